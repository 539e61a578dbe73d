"""(a) Parse, cold and warm decision, and what a parsed file keeps, over whole sites."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from corpus import Corpus, corpus
from peers import KOSTER, PROTEGO, ROBOT, Peer, peers
from report import Table
from timing import Times, by_turns, micros

from scrapy_koster.parsers import KosterRobotParser
from scrapy_koster.protocol.reading import RobotsTxt
from scrapy_koster.protocol.records import parse


class Goal(NamedTuple):
    what: str
    times: float
    """As fast as Protego."""

    def missed(self, reached: float) -> list[str]:
        if reached >= self.times:
            return []
        return [f"{self.what} {self.times} times as fast as Protego: {reached:.1f}"]


def tables(rounds: int) -> Iterator[Table]:
    found = corpus()
    everyone = peers()
    yield _compared(
        f"Parse, {found.name}, us a file",
        by_turns(_parsing(everyone, found), rounds),
        len(found.files),
        Goal("parse", 6),
        note="At the first decision, scrapy-koster parses the record that the robot obeys (first"
        " line) and sorts its rules (second line). `scrapy robots check` parses all records, with"
        " their line numbers (last line).",
    )
    yield _compared(
        f"Parse and first decision, {found.name}, us a file",
        by_turns({peer.name: _cold(peer, found) for peer in everyone}, rounds),
        len(found.files),
        Goal("parse and first decision", 5),
    )
    decisions = sum(len(file.urls) for file in found.files)
    warm = by_turns({peer.name: _warm(peer, found) for peer in everyone}, rounds)
    ours = warm[KOSTER.name].median / decisions
    yield _compared(
        f"Warm decision, {found.name}, us a URL",
        warm,
        decisions,
        Goal("a warm decision", 12),
        unmet=[] if ours < 1e-6 else [f"a warm decision in 1 us: {ours * 1e6:.2f}"],
    )
    yield _kept(found, everyone)


def _cold(peer: Peer, found: Corpus) -> Callable[[], None]:
    def run() -> None:
        for body, urls in found.files:
            peer.decide(peer.read(body), urls[:1])

    return run


def _parsing(everyone: list[Peer], found: Corpus) -> dict[str, Callable[[], None]]:
    def over_all(read: Callable[[bytes], object]) -> Callable[[], None]:
        def run() -> None:
            for file in found.files:
                read(file.body)

        return run

    def ready(body: bytes) -> None:
        KosterRobotParser.from_crawler(None, body).allowed("", ROBOT)

    return {
        KOSTER.name: over_all(lambda body: RobotsTxt(body).rules(ROBOT)),
        f"{KOSTER.name}, in order": over_all(ready),
        **{peer.name: over_all(peer.read) for peer in everyone if peer is not KOSTER},
        f"{KOSTER.name}, all records": over_all(parse),
    }


def _warm(peer: Peer, found: Corpus) -> Callable[[], None]:
    parsed = [(peer.read(file.body), file.urls) for file in found.files]

    def run() -> None:
        for parser, urls in parsed:
            peer.decide(parser, urls)

    return run


def _compared(
    title: str,
    times: dict[str, Times],
    each: int,
    goal: Goal,
    *,
    note: str = "",
    unmet: Sequence[str] = (),
) -> Table:
    ours = times[KOSTER.name]
    rows = [
        (name, micros(of.median / each), f"{of.spread:.0%}", f"{ours.ratio(of):.1f}")
        for name, of in times.items()
    ]
    reached = ours.ratio(times[PROTEGO.name])
    return Table(
        title,
        ("", "median", "quartiles apart", "times ours"),
        rows,
        note,
        [*unmet, *goal.missed(reached)],
    )


def _kept(found: Corpus, everyone: list[Peer]) -> Table:
    kept = {peer.name: _kept_bytes(peer, found) for peer in everyone}
    ours = kept[KOSTER.name]
    part = ours / kept[PROTEGO.name]
    return Table(
        f"Kept bytes a parsed file, {found.name}, after one decision",
        ("", "bytes", "times ours"),
        [(name, f"{size:,.0f}", f"{size / ours:.1f}") for name, size in kept.items()],
        "The octets of the file are among them: they explain a refusal later.",
        [] if part <= 0.25 else [f"at most a quarter of what Protego keeps: {part:.3f}"],
    )


def _kept_bytes(peer: Peer, found: Corpus) -> float:
    gc.collect()
    tracemalloc.start()
    try:
        parsers = []
        for body, urls in found.files:
            parser = peer.read(bytes(bytearray(body)))  # whoever keeps it pays for it
            peer.decide(parser, urls[:1])
            parsers.append(parser)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] / len(parsers)
    finally:
        tracemalloc.stop()
