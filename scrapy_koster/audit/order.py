"""The visits of many logs in the order of their times."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter

from scrapy_koster.audit.access_log import AccessLog, Visit

SLACK_SECS = 60
"""So far may a line stand behind one of a later time."""

_HELD_MOST = 20_000
PIECE_BYTES = 1 << 18
_PIECE_LEAST_BYTES = 1 << 14
_PIECES_BYTES = 1 << 24
_SECS = itemgetter(0)


class Ordered:
    """The logs as one."""

    def __init__(self, logs: Sequence[AccessLog]) -> None:
        self._logs = logs
        self.began = float("-inf")
        """When the first line of all is from, once the first visits are there."""

    def visits(self) -> Iterator[tuple[list[Visit], list[Visit]]]:
        """Yield some visits in their order, and those that came too late to stand in it.

        The log that is furthest behind is read first. So logs of one server may be given
        in any order, and those of several at once.
        """
        size = max(min(_PIECES_BYTES // len(self._logs), PIECE_BYTES), _PIECE_LEAST_BYTES)
        several = len(self._logs) > 1
        newest = {
            n: log.first_secs() if several and log.can_be_opened_again else float("-inf")
            for n, log in enumerate(self._logs)
        }
        reading = {n: log.batches(size) for n, log in enumerate(self._logs)}
        held: list[Visit] = []
        done = float("-inf")
        while reading:
            n = min(reading, key=newest.__getitem__)
            batch = next(reading[n], None)
            if batch is None:
                del reading[n]
            else:
                newest[n] = max(newest[n], self._logs[n].last)
                held += batch
            behind = min((newest[n] for n in reading), default=float("inf"))
            if behind == float("-inf"):
                continue
            self._begin()
            held.sort(key=_SECS)
            cut = bisect_left(held, behind - SLACK_SECS, key=_SECS)
            if len(held) - cut > _HELD_MOST:
                cut = max(cut, min(len(held) - _HELD_MOST, bisect_left(held, behind, key=_SECS)))
            late = bisect_left(held, done, 0, cut, key=_SECS)
            if cut > late:
                done = held[cut - 1][0]
            yield held[late:cut], held[:late]
            del held[:cut]

    def _begin(self) -> None:
        if self.began == float("-inf"):
            known = [log.first for log in self._logs if log.first is not None]
            self.began = min(known, default=float("-inf"))
