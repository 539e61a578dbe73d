"""Standard input, output and error, and lines of an answer, with colours for a terminal.

Writing fails if a disk is full or a pipe has no reader. Commands write to the terminal only through
this module, which escapes text from the network.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader
from pathlib import Path
from time import monotonic
from typing import TextIO, TypeAlias, cast

from scrapy.exceptions import UsageError

from scrapy_koster.protocol.printable import escaped

_PROGRESS_SECS = 5.0


@dataclass(frozen=True, slots=True)
class Painted:
    """Text with a colour."""

    colour: str
    """The parameters of the terminal's escape sequence."""
    text: str


red = partial(Painted, "1;31")
yellow = partial(Painted, "1;33")
green = partial(Painted, "1;32")
cyan = partial(Painted, "36")
bold = partial(Painted, "1")
dim = partial(Painted, "2")

Part: TypeAlias = "str | Painted"
Line: TypeAlias = "Part | tuple[Part, ...]"
"""A line of an answer. The text can be from the network: ``shown`` escapes the text."""


def shown(line: Line, *, coloured: bool) -> str:
    """Return *line* as printable text, with escape sequences if *coloured*."""
    return "".join(
        f"\x1b[{part.colour}m{escaped(part.text)}\x1b[0m"
        if coloured and isinstance(part, Painted)
        else escaped(part if isinstance(part, str) else part.text)
        for part in (line if isinstance(line, tuple) else (line,))
    )


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as "2 errors"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def table(columns: Sequence[str], rows: Sequence[Sequence[str | int]]) -> Iterator[Line]:
    """Yield the lines of a table. Columns of numbers are aligned to the right."""
    cells = [[escaped(str(cell)) for cell in row] for row in (columns, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    signs = [
        ">" if all(isinstance(row[at], int) for row in rows) else "<" for at in range(len(columns))
    ]
    heading, *lines = (
        "  ".join(map("{:{}{}}".format, row, signs, widths)).rstrip() for row in cells
    )
    yield bold(heading)
    yield from lines


def takes_colours(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether *stream* takes colours: by NO_COLOR, FORCE_COLOR, TERM, then isatty()."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or (environ.get("TERM") != "dumb" and stream.isatty())


def print_lines(lines: Iterable[Line]) -> Iterator[str]:
    """Print *lines* on standard output. If that fails, yield a message, and only make the rest.

    A pipe without a reader is no failure.
    """
    out = sys.stdout
    if out is None:
        yield "cannot write to standard output: it is closed"
    for line in lines:
        if out is None:
            continue
        encoding = out.encoding or "utf-8"
        text = shown(line, coloured=takes_colours(out, os.environ))
        try:
            # Flushed, so that a failure is known before the end.
            print(text.encode(encoding, "backslashreplace").decode(encoding), flush=True)
        except OSError as error:
            # At exit, Python flushes the rest of the text: into the null device, without an error.
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            out = None
            if not isinstance(error, BrokenPipeError):
                yield f"cannot write to standard output: {error.strerror}"


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
