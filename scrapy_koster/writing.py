"""Writes a file whole or not at all, and leaves symlinks, devices and pipes in place."""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

# A path in these folders is written into even if it leads to a file: a shell may have redirected
# standard output.
_DEVICES = ("/dev/", "/proc/")


@contextmanager
def whole(name: str) -> Iterator[Path]:
    """Yield a path of a temporary file, which replaces the file *name* if there was no error.

    A file is replaced in one step, so a reader never sees half of it. If *name* is a symlink,
    the target is replaced. The permissions stay. The path of a device or a pipe is *name*. Raises
    OSError, for example if the folder does not exist.
    """
    if _is_stream(name):
        yield Path(name)
        return
    final = _final(name)
    with _part_of(final) as part:
        yield part
        with suppress(OSError):  # a new file, or a file system without permissions
            shutil.copymode(final, part)
        part.replace(final)


def _is_stream(name: str) -> bool:
    """Return whether *name* is written into, and not replaced: a device, a pipe, or /dev/stdout."""
    try:
        found = Path(name).stat()
    except (OSError, ValueError):
        return False
    is_file = stat.S_ISREG(found.st_mode) and not name.startswith(_DEVICES)
    return not is_file and not stat.S_ISDIR(found.st_mode)


def try_writing(name: str) -> None:
    """Raise OSError or ValueError if *name* cannot be written. An existing file stays the same."""
    if not _is_stream(name):
        with _part_of(_final(name)) as part:
            part.touch()
    elif not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)


def _final(name: str) -> Path:
    """Return the path of the file *name*, or of the target of a symlink. Raises OSError."""
    final = Path(os.path.realpath(name))
    if not final.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "its folder does not exist", name)
    if final.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    return final


@contextmanager
def _part_of(final: Path) -> Iterator[Path]:
    """Yield a path next to *final* for a temporary file, which is deleted at the end."""
    part = final.with_name(f"{final.name}.{token_hex(4)}.part")
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)
