"""Writes a page whole or not at all, without harm to what the path names."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory

STANDARD_STREAMS = (0, 1, 2)


@contextmanager
def whole(name: str) -> Iterator[Path]:
    """Give a path to write to. If all went well, its content becomes that of *name*.

    A file is replaced in one step, so that a reader never sees half of a page. A symlink stays
    one: the file that it points to is replaced. A device, a pipe or a socket is written into.
    Raises OSError if the folder does not exist: none is made.
    """
    if is_stream(name):
        with TemporaryDirectory() as folder:
            page = Path(folder, "page")
            yield page
            with page.open("rb") as file, Path(name).open("wb") as stream:
                shutil.copyfileobj(file, stream)
        return
    final = _final(name)
    with _part_of(final) as part:
        yield part
        part.replace(final)


def is_stream(name: str) -> bool:
    """Whether *name* is written into, and not replaced: a device, a pipe, or our own output."""
    try:
        found = Path(name).stat()
    except (OSError, ValueError):
        return False
    if stat.S_ISREG(found.st_mode):
        return any(_is_open_at(fd, found) for fd in STANDARD_STREAMS)
    return not stat.S_ISDIR(found.st_mode)


def _is_open_at(fd: int, found: os.stat_result) -> bool:
    """Whether a standard stream is that file: -o /dev/stdout, which a shell sent to a file."""
    with suppress(OSError):
        return os.path.samestat(os.fstat(fd), found)
    return False


def try_writing(name: str) -> None:
    """Raise OSError or ValueError if *name* cannot be written. An existing file stays the same."""
    if not is_stream(name):
        with _part_of(_final(name)) as part:
            part.touch()
    elif not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _final(name: str) -> Path:
    """Return the path of the file that *name* is or points to. Raises OSError."""
    final = Path(os.path.realpath(name))
    if not final.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", name)
    if final.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return final


@contextmanager
def _part_of(final: Path) -> Iterator[Path]:
    """Give a path next to *final*, of a file that is removed at the end."""
    part = final.with_name(f"{final.name}.{token_hex(4)}.part")
    try:
        yield part
    finally:
        with suppress(OSError, ValueError):
            part.unlink()
