"""A million decisions of the matcher against those of the plain reading in the tests."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from corpus import corpus
from harness import oracle
from harness.strategies import PIECES
from report import Table

from scrapy_koster.protocol.reading import RobotsTxt

PAIRS = 1_000_000
ROBOTS = ["figtree", "googlebot", "bot", "a", ""]

Pair = tuple[bytes, str, list[str]]


def tables(rounds: int) -> Iterator[Table]:
    pairs = PAIRS if rounds > 2 else PAIRS // 20
    found = corpus()
    sources: dict[str, Callable[[random.Random], Pair]] = {
        found.name: lambda chance: _of_site(*chance.choice(found.files), chance),
        "short files whose paths collide": _colliding,
    }
    rows = []
    wrong = 0
    for name, draw in sources.items():
        compared, mismatches = _compare(draw, pairs // len(sources))
        wrong += mismatches
        rows.append((name, f"{compared:,}", f"{mismatches:,}"))
    yield Table(
        "Decisions against the plain reading of 3.2.1 and 3.2.2",
        ("", "pairs of file and URL", "mismatches"),
        rows,
        "Each as `allowed` decides and as `ruling` explains.",
        [f"no mismatch: {wrong}"] if wrong else [],
    )


def _compare(draw: Callable[[random.Random], Pair], pairs: int) -> tuple[int, int]:
    chance = random.Random(1996)
    compared = mismatches = 0
    while compared < pairs:
        body, robot, urls = draw(chance)
        robots = RobotsTxt(body)
        rules = [
            (field == b"allow", oracle.octets(value), number)
            for number, field, value in oracle.obeyed_rules(body, robot)
            if field in (b"allow", b"disallow") and value
        ]
        for url in urls:
            plain = _decide(rules, oracle.url_octets(url))
            ruling = robots.ruling(url, robot)
            line = ruling.rule.number if ruling.rule else None
            mismatches += plain != (ruling.allowed, line)
            mismatches += plain[0] != robots.allowed(url, robot)
        compared += len(urls)
    return compared, mismatches


def _decide(rules: list[tuple[bool, list[int], int]], path: list[int]) -> tuple[bool, int | None]:
    """Be ``oracle.decide``, with the file read once for all URLs."""
    if path != oracle.octets(b"/robots.txt"):
        for allowed, record_path, number in rules:
            if oracle.matches(record_path, path):
                return allowed, number
    return True, None


def _of_site(body: bytes, urls: list[str], chance: random.Random) -> Pair:
    if len(body) > 20_000:  # the plain reading is slow on purpose
        return b"", "", urls[:1]
    return body, chance.choice(ROBOTS), urls


def _colliding(chance: random.Random) -> Pair:
    def path() -> str:
        return "/" + "".join(chance.choices(PIECES, k=chance.randint(0, 4)))

    fields = ["Allow", "Disallow", "Disallow"]
    rules = [f"{chance.choice(fields)}: {path()}" for _ in range(chance.choice([1, 3, 8, 20, 90]))]
    body = "\n".join(["User-agent: *", *rules]).encode()
    return body, "figtree", [f"http://h{path()}" for _ in range(50)]
