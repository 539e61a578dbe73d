"""The progress of a survey or an audit: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from scrapy_koster.commands.style import style_for

if TYPE_CHECKING:
    from rich.progress import Progress

_LINE_EACH_SECS = 5.0
_DRAWN_EACH_SECS = 0.2
_WIDE = 75


class ProgressLines:
    """Reports counts by *say*, a line every five seconds."""

    def __init__(self, say: Callable[[str], None], worded: Callable[..., str]) -> None:
        """*worded* takes the counts of ``show`` and returns the line."""
        self._say = say
        self._worded = worded
        self._last = monotonic()

    def show(self, **counts: int) -> None:
        """Report the counts, if it is time to."""
        if monotonic() - self._last >= _LINE_EACH_SECS:
            self._last = monotonic()
            self._say(self._worded(**counts))


class ProgressBar:
    """Draws counts. Lines that are written to standard error meanwhile appear above the bar."""

    def __init__(self, progress: Progress, done: str, total: int, **counts: Any) -> None:
        """*done* is the name of the count that is compared with *total*, 0 if that is unknown."""
        self._progress = progress
        self._done = done
        self._task = progress.add_task("", total=total or None, **counts)
        self._last = monotonic() - _DRAWN_EACH_SECS

    def show(self, **counts: Any) -> None:
        """Draw the counts, if it is time to. The last ones are drawn at the end."""
        self._progress.update(self._task, completed=counts[self._done], **counts)
        if monotonic() - self._last >= _DRAWN_EACH_SECS:
            self._last = monotonic()
            self._progress.refresh()


@contextmanager
def progress_of(urls: int, say: Callable[[str], None]) -> Iterator[ProgressBar | ProgressLines]:
    """Show how many of *urls* are decided, on standard error, while the context is open."""

    def worded(decided: int, sites: int, refused: int) -> str:
        return f"{decided} of {urls} URLs, {sites} sites; {refused} refused"

    if not _draws():
        yield ProgressLines(say, worded)
        return
    # Only surveys and audits need rich.
    from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    more = [
        TextColumn("{task.fields[sites]} sites, {task.fields[refused]} refused"),
        TimeRemainingColumn(compact=True),
    ]
    with _progress([MofNCompleteColumn(), TextColumn("URLs")], more) as progress:
        yield ProgressBar(progress, "decided", urls, sites=0, refused=0)


@contextmanager
def progress_of_bytes(
    total: int, say: Callable[[str], None]
) -> Iterator[ProgressBar | ProgressLines]:
    """Show how many of *total* bytes are read, on standard error, while the context is open."""

    def worded(read: int) -> str:
        of_total = f" of {total / 1e6:,.0f}" if total else ""
        return f"{read / 1e6:,.0f}{of_total} MB read"

    if not _draws():
        yield ProgressLines(say, worded)
        return
    from rich.progress import (  # noqa: PLC0415
        DownloadColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = [DownloadColumn(), TransferSpeedColumn()]
    more = [TimeRemainingColumn(compact=True)]
    with _progress(columns, more, transient=True) as progress:
        yield ProgressBar(progress, "read", total)


def _draws() -> bool:
    """Whether a bar can be drawn on standard error."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _progress(columns: list[Any], more: list[Any], *, transient: bool = False) -> Progress:
    """Return a bar with *columns* before it, and with *more* if the terminal is wide."""
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress  # noqa: PLC0415

    coloured = style_for(sys.stderr, os.environ).coloured
    console = Console(
        file=sys.stderr, force_terminal=True, color_system="standard" if coloured else None
    )
    return Progress(
        *columns,
        *(more if console.width >= _WIDE else ()),
        BarColumn(bar_width=None),
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        expand=True,
        transient=transient,
    )
