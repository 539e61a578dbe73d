"""How far a survey has come: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from scrapy_koster.commands.ink import ink_for

_LINE_EACH_SECS = 5.0
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


@contextmanager
def progress_of(urls: int, say: Callable[[str], None]) -> Iterator[Bar | ProgressLines]:
    """Show how many of *urls* are decided, on standard error, while it is open."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield ProgressLines(urls, say)
        return
    coloured = ink_for(sys.stderr, os.environ).coloured
    console = Console(
        file=sys.stderr, force_terminal=True, color_system="standard" if coloured else None
    )
    counted: list[ProgressColumn] = [MofNCompleteColumn(), TextColumn("URLs")]
    if console.width >= _WIDE:
        more = "{task.fields[sites]} sites, {task.fields[refused]} refused"
        counted += [TextColumn(more), TimeRemainingColumn(compact=True)]
    with Progress(
        *counted,
        BarColumn(bar_width=None),
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        expand=True,
    ) as progress:
        yield Bar(urls, progress)
