"""How far a survey or an audit has come: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from scrapy_koster.commands.style import style_for

_LINE_EACH_SECS = 5.0
_DRAWN_EACH_SECS = 0.2
_WIDE = 75


class ProgressLines:
    """Says it by *say*, a line every five seconds."""

    def __init__(self, urls: int, say: Callable[[str], None]) -> None:
        """*urls* is how many there are to decide."""
        self._urls = urls
        self._say = say
        self._last = monotonic()

    def show(self, *, decided: int, sites: int, refused: int) -> None:
        """Say it, if it is time to."""
        if monotonic() - self._last >= _LINE_EACH_SECS:
            self._last = monotonic()
            self._say(f"{decided} of {self._urls} URLs, {sites} sites; {refused} refused")


class Bar:
    """Draws it. What is written to standard error meanwhile stands above it."""

    def __init__(self, urls: int, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=urls, sites=0, refused=0)

    def show(self, *, decided: int, sites: int, refused: int) -> None:
        """Draw it."""
        self._progress.update(self._task, completed=decided, sites=sites, refused=refused)
        self._progress.refresh()


class ByteLines:
    """Says how much of the logs is read by *say*, a line every five seconds."""

    def __init__(self, total: int, say: Callable[[str], None]) -> None:
        """*total* is how many bytes there are, 0 if that is not known."""
        self._total = total
        self._say = say
        self._last = monotonic()

    def show(self, read: int) -> None:
        """Say it, if it is time to."""
        if monotonic() - self._last >= _LINE_EACH_SECS:
            self._last = monotonic()
            total = f" of {self._total / 1e6:,.0f}" if self._total else ""
            self._say(f"{read / 1e6:,.0f}{total} MB read")


class ByteBar:
    """Draws how much of the logs is read."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=total or None)
        self._last = monotonic() - _DRAWN_EACH_SECS

    def show(self, read: int) -> None:
        """Draw it, if it is time to."""
        if monotonic() - self._last >= _DRAWN_EACH_SECS:
            self._last = monotonic()
            self._progress.update(self._task, completed=read)
            self._progress.refresh()


@contextmanager
def progress_of(urls: int, say: Callable[[str], None]) -> Iterator[Bar | ProgressLines]:
    """Show how many of *urls* are decided, on standard error, while it is open."""
    if (console := _terminal()) is None:
        yield ProgressLines(urls, say)
        return
    counted: list[ProgressColumn] = [MofNCompleteColumn(), TextColumn("URLs")]
    if console.width >= _WIDE:
        more = "{task.fields[sites]} sites, {task.fields[refused]} refused"
        counted += [TextColumn(more), TimeRemainingColumn(compact=True)]
    with _drawn(console, counted) as progress:
        yield Bar(urls, progress)


@contextmanager
def progress_of_bytes(total: int, say: Callable[[str], None]) -> Iterator[ByteBar | ByteLines]:
    """Show how many of *total* bytes are read, on standard error, while it is open."""
    if (console := _terminal()) is None:
        yield ByteLines(total, say)
        return
    columns: list[ProgressColumn] = [DownloadColumn(), TransferSpeedColumn()]
    if console.width >= _WIDE:
        columns.append(TimeRemainingColumn(compact=True))
    with _drawn(console, columns, transient=True) as progress:
        yield ByteBar(total, progress)


def _terminal() -> Console | None:
    """Return standard error if a bar can be drawn on it."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return None
    coloured = style_for(sys.stderr, os.environ).coloured
    return Console(
        file=sys.stderr, force_terminal=True, color_system="standard" if coloured else None
    )


def _drawn(console: Console, columns: list[ProgressColumn], *, transient: bool = False) -> Progress:
    return Progress(
        *columns,
        BarColumn(bar_width=None),
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        expand=True,
        transient=transient,
    )
