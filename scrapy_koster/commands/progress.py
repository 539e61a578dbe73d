"""The progress of a survey or an audit: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from scrapy_koster.commands.style import style_for

if TYPE_CHECKING:
    from rich.progress import Progress

_LINE_EACH_SECS = 5.0
_DRAWN_EACH_SECS = 0.2
_WIDE = 75


class ProgressLines:
    """Reports counts by *say*, a line every five seconds."""

    def __init__(self, say: Callable[[str], None], worded: Callable[..., str]) -> None:
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

    def __init__(self, progress: Progress, worded: Callable[..., str], total: int) -> None:
        self._progress = progress
        self._worded = worded
        self._task = progress.add_task("", total=total or None)
        self._last = monotonic() - _DRAWN_EACH_SECS

    def show(self, **counts: int) -> None:
        """Draw the counts, if it is time to. The last ones are drawn at the end."""
        done, text = next(iter(counts.values())), self._worded(**counts)
        self._progress.update(self._task, completed=done, description=text)
        if monotonic() - self._last >= _DRAWN_EACH_SECS:
            self._last = monotonic()
            self._progress.refresh()


@contextmanager
def progress_of(
    total: int, say: Callable[[str], None], worded: Callable[..., str]
) -> Iterator[ProgressBar | ProgressLines]:
    """Show counts on standard error while the context is open.

    *worded* takes the counts by name and returns a text. The first count ends at *total*, which
    is 0 if that is unknown.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield ProgressLines(say, worded)
        return
    # Only surveys and audits need rich, and they need the extra.
    import rich.progress as rich  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    coloured = style_for(sys.stderr, os.environ).coloured
    console = Console(
        file=sys.stderr, force_terminal=True, color_system="standard" if coloured else None
    )
    text = [rich.TextColumn("{task.description}"), rich.TimeRemainingColumn(compact=True)]
    with rich.Progress(
        *(text if console.width >= _WIDE else [rich.TaskProgressColumn()]),
        rich.BarColumn(bar_width=None),
        console=console,
        auto_refresh=False,
        redirect_stdout=False,
        expand=True,
        transient=True,
    ) as progress:
        yield ProgressBar(progress, worded, total)
