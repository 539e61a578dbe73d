"""One timer for all items that may last for so long at most."""

from __future__ import annotations

import pytest
from harness.clocks import HandClock

from scrapy_koster.crawl.timetable import Timeouts


class Lasting:
    """Items that may last for 10 seconds."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.late: list[str] = []
        self.timeouts: Timeouts[str] = Timeouts(self.clock, 10.0, self._is_late)
        self.ends: dict[str, str] = {}
        """By an item that is late: another one that is ended, or begun if it is none yet."""

    def begin(self, *items: str) -> None:
        for item in items:
            self.timeouts.begin(item)

    def _is_late(self, item: str) -> None:
        self.late.append(item)
        if item in self.ends and not self.timeouts.end(self.ends[item]):
            self.begin(self.ends[item])


def test_what_lasts_too_long_is_late_once_and_in_its_time() -> None:
    lasting = Lasting()
    lasting.begin("a")
    lasting.clock.go_on(4.0)
    lasting.begin("b", "c")
    assert lasting.timeouts.end("b")
    lasting.clock.go_on(5.9)
    assert not lasting.late
    lasting.clock.go_on(0.2)
    assert lasting.late == ["a"]
    assert not lasting.timeouts.end("a")
    lasting.clock.go_on(3.8)
    assert lasting.late == ["a"]
    lasting.clock.go_on(0.2)
    assert lasting.late == ["a", "c"]


def test_there_is_one_timer_and_none_when_all_have_ended() -> None:
    lasting = Lasting()
    assert lasting.clock.waiting == 0
    lasting.begin("a", "b")
    assert lasting.clock.waiting == 1
    assert lasting.timeouts.end("a")
    assert lasting.clock.waiting == 1
    assert lasting.timeouts.end("b")
    assert lasting.clock.waiting == 0
    lasting.begin("c")
    lasting.clock.go_on(10.1)
    assert lasting.late == ["c"]
    assert lasting.clock.waiting == 0


def test_who_is_late_may_end_another_or_begin_one() -> None:
    lasting = Lasting()
    lasting.ends = {"a": "b", "c": "d"}
    lasting.begin("a", "b", "c")
    lasting.clock.go_on(11.0)
    assert lasting.late == ["a", "c"]
    lasting.clock.go_on(9.9)
    assert lasting.late == ["a", "c"]
    lasting.clock.go_on(0.2)
    assert lasting.late == ["a", "c", "d"]


def test_others_are_late_in_their_time_though_one_raises() -> None:
    clock, late = HandClock(), []

    def fail(item: str) -> None:
        late.append(item)
        raise ValueError(item)

    timeouts = Timeouts(clock, 10.0, fail)
    timeouts.begin("a")
    timeouts.begin("b")
    for item in ("a", "b"):
        with pytest.raises(ValueError, match=item):
            clock.go_on(10.1)
    assert late == ["a", "b"]
