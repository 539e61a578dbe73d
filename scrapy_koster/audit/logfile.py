"""A log or list, on the disk or standard input, compressed or not, as pieces of whole lines."""

import lzma
import zlib
from bz2 import BZ2File
from collections.abc import Iterator
from gzip import GzipFile
from io import BufferedIOBase, BufferedReader

LONGEST_LINE_BYTES = 1 << 16
"""A longer line is cut."""

_DAMAGES = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, MemoryError)
"""The errors of a damaged or unreadable file."""

_MAGIC_BYTES = 6


class LogError(ValueError):
    """A file cannot be read to the end. The lines before the damage count."""


def _decompressed(file: BufferedReader) -> BufferedIOBase:
    """Return *file*, decompressed if the first bytes are of gzip, bzip2 or xz."""
    start = file.peek(_MAGIC_BYTES)
    if start.startswith(b"\x1f\x8b"):
        return GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return BZ2File(file)
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    return file


def pieces(file: BufferedReader, size: int) -> Iterator[bytes]:
    """Yield pieces of whole lines with line ends, of about *size* bytes. Long lines are cut.

    For a damaged file, raises LogError after the readable lines.
    """
    rest, damage = b"", None
    try:
        stream = _decompressed(file)
        while data := stream.read1(size):
            whole = data.rfind(b"\n") + 1
            if whole:
                yield _cut(rest + data[:whole])
                rest = data[whole:]
            else:
                rest = (rest + data)[:LONGEST_LINE_BYTES]
    except _DAMAGES as error:
        damage = LogError(f"damaged: {error}")
    if rest:
        yield _cut(rest + b"\n")
    if damage is not None:
        raise damage


def _cut(piece: bytes) -> bytes:
    """Return *piece* without a byte order mark, and with its long lines cut."""
    lines = piece.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return b"\n".join(line[:LONGEST_LINE_BYTES] for line in lines)
