"""The visits of several logs in the order of time."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from pathlib import Path

from scrapy_koster.audit.access_log import AccessLog, Visit

SLACK_SECS = 60
"""Lines out of order by at most this time are sorted. Lines further out of order are late.

If more than _HELD_MOST visits would be held, lines less far out of order can be late, too.
"""

_HELD_MOST = 20_000
PIECE_BYTES = 1 << 18
_PIECE_LEAST_BYTES = 1 << 14
_PIECES_BYTES = 1 << 24
_SECS = itemgetter(0)


def merged_logs(logs: Sequence[AccessLog]) -> Iterator[tuple[list[Visit], list[Visit]]]:
    """Yield pairs of lists: the next visits in the order of time, and late visits.

    The next piece comes from the log that has been read least far in time, so the logs of one or
    several servers can be passed in any order.
    """
    size = max(min(_PIECES_BYTES // len(logs), PIECE_BYTES), _PIECE_LEAST_BYTES)
    newest = [
        log.first_secs()
        if len(logs) > 1 and log.name != "-" and Path(log.name).is_file()
        else float("-inf")
        for log in logs
    ]  # first_secs opens a log, and a pipe cannot be opened again
    reading = {n: log.batches(size) for n, log in enumerate(logs)}
    held: list[Visit] = []
    done = float("-inf")
    while reading:
        n = min(reading, key=newest.__getitem__)
        batch = next(reading[n], None)
        if batch is None:
            del reading[n]
        else:
            newest[n] = max(newest[n], logs[n].last)
            held += batch
        behind = min((newest[n] for n in reading), default=float("inf"))
        if behind == float("-inf"):
            continue
        held.sort(key=_SECS)
        cut = bisect_left(held, behind - SLACK_SECS, key=_SECS)
        if len(held) - cut > _HELD_MOST:
            cut = max(cut, min(len(held) - _HELD_MOST, bisect_left(held, behind, key=_SECS)))
        late = bisect_left(held, done, 0, cut, key=_SECS)
        if cut > late:
            done = held[cut - 1][0]
        yield held[late:cut], held[:late]
        del held[:cut]
