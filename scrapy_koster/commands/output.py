"""Standard input, output and error, which may be full, or read by nobody.

This is the one way to the terminal, for text that may come from anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import cast

from scrapy.exceptions import UsageError

from scrapy_koster.commands.style import Line, Style, shown, style_for
from scrapy_koster.protocol.printable import escaped


class Output:
    """The standard streams of the command."""

    def __init__(self) -> None:
        self._written = True
        self.failure: str | None = None
        """Why standard output takes nothing more; None too if its reader has seen enough."""

    @contextmanager
    def opened(self, name: str, wanted: str = "a file,") -> Iterator[BufferedReader]:
        """Open a file, or standard input where *name* is "-".

        UsageError, which says what is *wanted*, where it cannot be read, then or later.
        """
        try:
            if name != "-":
                with Path(name).open("rb") as file:
                    yield file
            else:
                yield cast("BufferedReader", sys.stdin.buffer)
        except (OSError, ValueError) as error:  # ValueError: a name with NUL in it
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot read {name!r}: {reason}; give {wanted} or - for standard input"
            ) from None

    @staticmethod
    def style() -> Style:
        """Return the colours that standard output takes."""
        return style_for(sys.stdout, os.environ)

    def write(self, line: Line) -> None:
        """Print *line*, unless standard output takes nothing more."""
        encoding = sys.stdout.encoding or "utf-8"
        text = shown(line).encode(encoding, "backslashreplace").decode(encoding)
        self._try(lambda: print(text))

    def flush(self) -> None:
        """Have written what was printed, as far as standard output takes it."""
        self._try(sys.stdout.flush)

    def _try(self, output: Callable[[], None]) -> None:
        if not self._written:
            return
        try:
            output()
        except OSError as error:
            # Who reads a pipe may have seen enough.
            self.failure = None if isinstance(error, BrokenPipeError) else error.strerror
            self._written = False
            # Python would flush the rest when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    @staticmethod
    def warn(message: str) -> None:
        """Say on standard error what could not be done, if that takes it."""
        with suppress(OSError):
            print(f"scrapy robots: {escaped(message)}", file=sys.stderr, flush=True)
