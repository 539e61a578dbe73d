"""RFC 9309 beside Protego as Scrapy uses it, and both readings beside the draft with Protego."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from corpus import corpus
from peers import ROBOT, Peer
from real_files import File
from report import Table
from scrapy.robotstxt import ProtegoRobotParser
from timing import by_turns, micros

from scrapy_koster import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.reading import Rfc9309

Job: TypeAlias = Callable[[Peer, list[File]], tuple[Callable[[], None], int]]
"""What is measured of a peer over files, and how many times a round does it."""

NUMBERS = (5, 50, 500, 5_000)
DECISIONS = 2_000


class _DraftAndProtego:
    """What StrictestRobotParser was before it read RFC 9309 itself."""

    def __init__(self, body: bytes) -> None:
        self._draft = KosterRobotParser(body)
        self._protego = ProtegoRobotParser(body, None)

    def allowed(self, url: str, robot: str) -> bool:
        return self._draft.allowed(url, robot) and self._protego.allowed(url, robot)


def _decide(parser: Any, urls: Sequence[str]) -> None:
    allowed = parser.allowed
    for url in urls:
        allowed(url, ROBOT)


RFC_9309 = Peer("Rfc9309RobotParser", Rfc9309RobotParser, _decide)
STRICTEST = Peer("StrictestRobotParser", StrictestRobotParser, _decide)
PROTEGO = Peer("Protego", lambda body: ProtegoRobotParser(body, None), _decide)
BEFORE = Peer("the draft and Protego", _DraftAndProtego, _decide)


def tables(rounds: int) -> Iterator[Table]:
    found = corpus()
    wild = [file for file in found.files if _has_wildcards(file)]
    plain = [file for file in found.files if not _has_wildcards(file)]
    every = {"all": found.files, "with wildcards": wild, "without": plain}
    for title, job, goals in (
        ("Parse and first decision, us a file", _cold, {"all": 3.0}),
        ("Warm decision, us a URL", _warm, {"with wildcards": 3.0, "without": 10.0}),
    ):
        for ours, theirs in ((RFC_9309, PROTEGO), (STRICTEST, BEFORE)):
            of_ours = goals if ours is RFC_9309 else {"all": 3.0}
            rows = list(_beside(ours, theirs, every, job, rounds=rounds))
            yield Table(
                f"{title}, {found.name}",
                ("files", ours.name, theirs.name, "times ours"),
                [row for row, _ in rows],
                "",
                [
                    f"{row[0]}: {of_ours[name]:g} times as fast"
                    for name, (row, ratio) in zip(every, rows, strict=True)
                    if ratio < of_ours.get(name, 0.0)
                ],
            )
    yield _by_number(rounds)


def _has_wildcards(file: File) -> bool:
    records = Rfc9309(file.body).records(ROBOT)
    paths = [rule.value for record in records for rule in record.rules if rule.field != b"sitemap"]
    return any(b"*" in path or path.endswith(b"$") for path in paths)


def _beside(
    ours: Peer, theirs: Peer, every: dict[str, list[File]], job: Job, *, rounds: int
) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yield a row for each set of files, and how many times as long theirs takes."""
    for name, files in every.items():
        jobs = {peer.name: job(peer, files) for peer in (ours, theirs)}
        times = by_turns({peer: run for peer, (run, _) in jobs.items()}, rounds)
        ratio = times[ours.name].ratio(times[theirs.name])
        us = [micros(times[peer].median / each) for peer, (_, each) in jobs.items()]
        yield (f"{name}: {len(files):,}", *us, f"{ratio:.1f}"), ratio


def _cold(peer: Peer, files: list[File]) -> tuple[Callable[[], None], int]:
    def run() -> None:
        for body, urls in files:
            peer.decide(peer.read(body), urls[:1])

    return run, len(files)


def _warm(peer: Peer, files: list[File]) -> tuple[Callable[[], None], int]:
    parsed = [(peer.read(file.body), file.urls) for file in files]

    def run() -> None:
        for parser, urls in parsed:
            peer.decide(parser, urls)

    return run, sum(len(file.urls) for file in files)


def _by_number(rounds: int) -> Table:
    """The time of a decision as the number of rules with wildcards grows."""
    shapes = {"/*/page-1.html": "/*/page-{n}.html", "/section-1/*/p1$": "/section-{n}/*/p{n}$"}
    rows = []
    for name, shape in shapes.items():
        jobs = {f"{n:,}": _decisions(shape, n) for n in NUMBERS}
        times = by_turns(jobs, rounds)
        us = [micros(times[number].median / DECISIONS) for number in jobs]
        rows.append((name, *us))
    head = ("rules like", *(f"{n:,}" for n in NUMBERS))
    return Table("Warm decision by the number of rules with wildcards, us a URL", head, rows, "")


def _decisions(shape: str, rules: int) -> Callable[[], None]:
    lines = [f"Disallow: {shape.format(n=n)}\n" for n in range(rules)]
    parser = RFC_9309.read("".join(["User-agent: *\n", *lines]).encode())
    urls = [
        f"https://www.fict.org/section-{n % 97}/x/page-{n * 7919 % (2 * rules)}.html"
        for n in range(DECISIONS)
    ]
    return lambda: RFC_9309.decide(parser, urls)
