"""Standard input, output and error. Writing fails if a disk is full or a pipe has no reader.

Commands write to the terminal only through this module, which escapes text from the network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import cast

from scrapy.exceptions import UsageError

from scrapy_koster.commands.style import Line, shown, takes_colours
from scrapy_koster.protocol.printable import escaped

_PROGRESS_SECS = 5.0


class Output:
    """Standard output."""

    def __init__(self) -> None:
        self._written = sys.stdout is not None
        self.failure: str | None = None if self._written else "it is closed"
        """The reason why writing failed, or None. A pipe without a reader is no failure."""

    def write(self, line: Line) -> None:
        """Print *line*, unless standard output has failed."""
        if self._written:
            encoding = sys.stdout.encoding or "utf-8"
            text = shown(line, coloured=takes_colours(sys.stdout, os.environ))
            text = text.encode(encoding, "backslashreplace").decode(encoding)
            self._try(lambda: print(text))

    def flush(self) -> None:
        """Write the printed lines, unless standard output has failed."""
        if self._written:
            self._try(sys.stdout.flush)

    def _try(self, output: Callable[[], None]) -> None:
        try:
            output()
        except OSError as error:
            self.failure = None if isinstance(error, BrokenPipeError) else error.strerror
            self._written = False
            # At exit, Python flushes the rest of the text: into the null device, without an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def warn(message: str) -> None:
    """Print *message* on standard error. If printing fails, the message is lost."""
    with suppress(OSError):
        if sys.stderr is not None:  # print() would write to standard output
            print(f"scrapy robots: {escaped(message)}", file=sys.stderr, flush=True)


def progress_of(worded: Callable[..., str]) -> Callable[..., None]:
    """Return a function that prints counts on standard error, at most every five seconds.

    *worded* is called with the counts as keyword arguments, and returns the text.
    """
    last = monotonic()

    def show(**counts: int) -> None:
        nonlocal last
        if monotonic() - last >= _PROGRESS_SECS:
            last = monotonic()
            warn(worded(**counts))

    return show


@contextmanager
def file_errors(failed: str, advice: str = "") -> Iterator[None]:
    """Turn a file error into a UsageError. The message is *failed*, the reason, and *advice*."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: the name has a NUL character
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{failed}: {reason}{advice}") from None


@contextmanager
def opened(name: str, wanted: str = "a file,") -> Iterator[BufferedReader]:
    """Open a file, or standard input if *name* is "-".

    Raises UsageError if the file cannot be opened or read. The message has the advice
    "give {wanted} or - for standard input".
    """
    with (
        file_errors(f"cannot read {name!r}", f"; give {wanted} or - for standard input"),
        nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file,
    ):
        yield cast("BufferedReader", file)
