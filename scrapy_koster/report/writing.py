"""How a page is written: whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EISDIR
from os import strerror
from pathlib import Path
from secrets import token_hex


@contextmanager
def whole(name: str) -> Iterator[Path]:
    """Give a path to write to; what was written takes the place of *name* if all went well."""
    with _part_of(name) as part:
        yield part
        part.replace(Path(name).absolute())


def try_writing(name: str) -> None:
    """Raise OSError or ValueError if a file *name* cannot be written; change no such file.

    The folder that it belongs into is made.
    """
    if Path(name).is_dir():
        raise IsADirectoryError(EISDIR, strerror(EISDIR))
    with _part_of(name) as part:
        part.touch()


@contextmanager
def _part_of(name: str) -> Iterator[Path]:
    """Give a path beside *name*, of a file that is removed at the end."""
    final = Path(name).absolute()
    part = final.with_name(f"{final.name}.{token_hex(4)}.part")
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield part
    finally:
        with suppress(OSError, ValueError):
            part.unlink()
