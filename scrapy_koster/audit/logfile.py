"""A log on the disk or on standard input, compressed or not, as pieces of whole lines."""

import lzma
import zlib
from bz2 import BZ2File
from collections.abc import Iterator
from gzip import GzipFile
from io import BufferedIOBase, BufferedReader

LONGEST_LINE_BYTES = 1 << 16
"""A longer line is skipped, and counted as unread."""

DAMAGES = (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, MemoryError)
"""The errors of a damaged or unreadable file."""

_MAGIC_BYTES = 6


class LogError(Exception):
    """A log cannot be read to the end. The lines before the damage count."""


def decompressed(file: BufferedReader) -> BufferedIOBase:
    """Return *file*, decompressed if the first bytes are of gzip, bzip2 or xz."""
    start = file.peek(_MAGIC_BYTES)
    if start.startswith(b"\x1f\x8b"):
        return GzipFile(fileobj=file)
    if start.startswith(b"BZh"):
        return BZ2File(file)
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMAFile(file)
    return file


class Lines:
    """The lines of a log, in pieces."""

    def __init__(self, file: BufferedReader, size: int) -> None:
        self._file = file
        self._size = size
        self.too_long = 0
        """Number of lines that were skipped so far because of their length."""

    def pieces(self) -> Iterator[bytes]:
        """Yield pieces of whole lines with line ends, of about ``size`` bytes.

        For a damaged log, raises LogError after the readable lines.
        """
        rest, damage = b"", None
        try:
            stream = decompressed(self._file)
            while data := stream.read1(self._size):
                whole = data.rfind(b"\n") + 1
                if whole:
                    yield self._short(rest + data[:whole])
                    rest = data[whole:]
                else:
                    # The start of a long line is enough: ``_short`` skips the line.
                    rest = (rest + data)[: LONGEST_LINE_BYTES + 1]
        except DAMAGES as error:
            damage = LogError(f"damaged: {error}")
        if rest:
            yield self._short(rest + b"\n")
        if damage is not None:
            raise damage

    def _short(self, piece: bytes) -> bytes:
        """Return *piece* without lines that are too long."""
        lines = piece.split(b"\n")
        short = [line for line in lines if len(line) < LONGEST_LINE_BYTES]
        self.too_long += len(lines) - len(short)
        return b"\n".join(short)
