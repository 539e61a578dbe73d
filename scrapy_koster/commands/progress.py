"""The progress of a survey or an audit: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

_LINE_EACH_SECS = 5.0


@contextmanager
def progress_of(
    total: int, say: Callable[[str], None], worded: Callable[..., str]
) -> Iterator[Callable[..., None]]:
    """Give a function that shows counts on standard error: a bar, or by *say* a line at times.

    *worded* takes the counts by name and returns a text. The first count ends at *total*, which
    is 0 if that is unknown.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        last = monotonic()

        def show_line(**counts: int) -> None:
            nonlocal last
            if monotonic() - last >= _LINE_EACH_SECS:
                last = monotonic()
                say(worded(**counts))

        yield show_line
        return
    # Only surveys and audits need rich, and they need the extra.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    text, console = TextColumn("{task.description}"), Console(stderr=True)
    with Progress(
        text, BarColumn(), console=console, redirect_stdout=False, transient=True
    ) as progress:
        task = progress.add_task("", total=total or None)

        def draw(**counts: int) -> None:
            done = next(iter(counts.values()))
            progress.update(task, completed=done, description=worded(**counts))

        yield draw
