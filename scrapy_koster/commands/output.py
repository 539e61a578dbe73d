"""Standard input, output and error, any of which may be closed, full, or read by nobody.

This is the one way to the terminal, for text that may come from anywhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from scrapy.exceptions import UsageError

from scrapy_koster.commands.style import Line, shown
from scrapy_koster.protocol.printable import escaped


class Output:
    """The three streams as the command found them.

    One that is closed is opened on nothing: its number would be given to the
    next file that is opened, such as the database, and what is printed would
    land in there.
    """

    def __init__(self) -> None:
        self._stdin_closed = sys.stdin is None
        self._written = sys.stdout is not None
        self.failure = None if self._written else "it is closed"
        """Why standard output takes nothing more; None too where nobody reads it to its end."""
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))

    @contextmanager
    def opened(self, name: str, wanted: str = "a file,") -> Iterator[BinaryIO]:
        """Open a file, or standard input where *name* is "-".

        UsageError, which says what is *wanted*, where it cannot be read, then or later.
        """
        try:
            if name != "-":
                with Path(name).open("rb") as file:
                    yield file
            elif self._stdin_closed:
                raise UsageError("cannot read '-': standard input is closed")
            else:
                yield sys.stdin.buffer
        except (OSError, ValueError) as error:  # ValueError: a name with NUL in it
            reason = getattr(error, "strerror", None) or error
            raise UsageError(
                f"cannot read {name!r}: {reason}; give {wanted} or - for standard input"
            ) from None

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
