"""What a large file costs: the memory that is kept of it, and the work of a decision."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections import Counter
from typing import Any

import pytest
from harness.hostile import HOSTILE, HOSTILE_PATHS
from harness.strategies import PIECES
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.parsers import KosterRobotParser, Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.hazard import watch_of

PARSERS = [KosterRobotParser, Rfc9309RobotParser]
URLS = [f"http://h{path}" for path in HOSTILE_PATHS]
SOME = ("shortest rules", "many groups", "distinct and misspelt", "one rule of encoded slashes")
# StrictestRobotParser keeps what both of the others keep.
LARGE = [
    *((64_000, kind, KosterRobotParser) for kind in SOME),
    *(
        pytest.param(512_000, kind, StrictestRobotParser, marks=pytest.mark.long)
        for kind in HOSTILE
    ),
]
ROBOTS = ["figtree", "Mozilla/5.0 (compatible; FigTree/1.0)", "figtree-images, figtree", "oak"]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "kind", "parser"), LARGE)
def test_a_file_takes_at_most_six_times_its_bytes(size: int, kind: str, parser: Any) -> None:
    """6: "robots are encouraged to place limits on the resources spent"."""
    body = HOSTILE[kind](size)
    tracemalloc.start()
    try:
        kept = parser(body), watch_of(body, parser(body))
        for robot in ROBOTS:
            for url in URLS[:2]:
                kept[0].allowed(url, robot)
                kept[0].ruling(url, robot)
                if kept[1] is not None:
                    kept[1].hazard(url, robot)
        parser(b"").allowed(URLS[0], "")  # and not what is remembered of the last file
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 6 * len(body)


@pytest.mark.parametrize("parser", PARSERS)
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_decision_looks_at_few_rules(kind: str, parser: Any) -> None:
    """Counted in calls: 20,000 of them are a few milliseconds."""
    robots = parser(HOSTILE[kind](64_000))
    for _ in range(4):  # the first three read the file, and the next one makes an index
        robots.allowed("http://h/", "figtree")
    calls: Counter[str] = Counter()
    for url in URLS:
        calls.clear()
        sys.setprofile(lambda _frame, event, _arg: calls.update([event]))
        try:
            robots.allowed(url, "figtree")
        finally:
            sys.setprofile(None)
        assert calls["call"] + calls["c_call"] < 20_000, url


@st.composite
def files(draw: st.DrawFn) -> tuple[list[str], str]:
    piece = st.sampled_from([*PIECES, "*", "$"])
    path = st.lists(piece, max_size=5).map("".join)
    start = st.sampled_from(["Allow: /", "Allow: *", "Disallow: /", "Disallow: *"])
    rules = draw(st.lists(st.tuples(start, path).map("".join), min_size=1, max_size=20))
    like = draw(st.sampled_from(rules)).partition(": ")[2]
    return rules, "/" + draw(path) + like.replace("*", draw(path))


@given(files())
@pytest.mark.parametrize("parser", PARSERS)
def test_rules_that_are_repeated_change_nothing(parser: Any, made: tuple[list[str], str]) -> None:
    """A large file is decided as the small one is, by the same line."""
    rules, path = made
    once, often = (
        parser("\n".join(["User-agent: *", *rules * times]).encode())
        for times in (1, 2_500 // len(rules) + 1)
    )
    for url in (f"http://h{path}", f"http://h{path}a", "http://h/robots.txt"):
        assert often.ruling(url, "figtree") == once.ruling(url, "figtree")
        assert often.allowed(url, "figtree") is once.allowed(url, "figtree")
