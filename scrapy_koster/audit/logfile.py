"""A log on the disk or on standard input, compressed or not, as pieces of whole lines."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

LONGEST_LINE_BYTES = 1 << 16
"""What is longer is no line of a log: it is passed over, and counted as unread."""

_READ_BYTES = 1 << 16
_MAGIC_BYTES = 6
_XZ_MEMORY_BYTES = 1 << 27


class LogError(Exception):
    """A log that cannot be read to its end. What was read of it counts."""


class _Gzip:
    """zlib's decompressor, with the interface of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.needs_input = True
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        found = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.needs_input = not self._zlib.unconsumed_tail
        self.eof, self.unused_data = self._zlib.eof, self._zlib.unused_data
        return found


def _decompressor(start: bytes) -> Any:
    """Return what reads a file that begins so; None where it is not compressed."""
    if start.startswith(b"\x1f\x8b"):
        return _Gzip()
    if start.startswith(b"BZh"):
        return bz2.BZ2Decompressor()
    if start.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor(memlimit=_XZ_MEMORY_BYTES)
    return None


def _to_be_known(file: BinaryIO, start: bytes) -> bytes:
    """Return *start*, with more if it is too little to tell what follows. A pipe gives some."""
    while len(start) < _MAGIC_BYTES and (more := file.read(_MAGIC_BYTES)):
        start += more
    return start


def octets(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield what is in *file*, *size* octets at most at once, decompressed.

    Raises LogError if it is damaged, and OSError.
    """
    start = _to_be_known(file, file.read(_READ_BYTES))
    decompressor = _decompressor(start)
    if decompressor is None:
        yield start
        while data := file.read(size):
            yield data
        return
    try:
        yield from _decompressed(file, start, decompressor, size)
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, MemoryError) as error:
        raise LogError(f"damaged: {error}") from None


def _decompressed(file: BinaryIO, data: bytes, decompressor: Any, size: int) -> Iterator[bytes]:
    while True:
        yield decompressor.decompress(data, size)
        if decompressor.eof:
            data = decompressor.unused_data.lstrip(b"\0") or file.read(_READ_BYTES)
            if not data:
                return
            data = _to_be_known(file, data)
            decompressor = _decompressor(data)
            if decompressor is None:
                raise LogError("damaged: something else follows what is compressed")
        elif decompressor.needs_input:
            data = file.read(_READ_BYTES)
            if not data:
                raise LogError("damaged: it ends too early")
        else:
            data = b""


class Lines:
    """The lines of one log, in pieces."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.too_long = 0
        """How many lines so far were too long to be one."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the lines, each with its line end, about *size* octets of them at once.

        Raises LogError and OSError, having yielded what could be read.
        """
        rest, cut = b"", None
        try:
            for data in octets(self._file, self._size):
                whole = data.rfind(b"\n") + 1
                if whole:
                    yield self._short(rest + data[:whole])
                    rest = data[whole:]
                else:
                    # What is too long already need not be kept.
                    rest = (rest + data)[: LONGEST_LINE_BYTES + 1]
        except (OSError, LogError) as error:
            cut = error
        if rest:
            yield self._short(rest + b"\n")
        if cut is not None:
            raise cut

    def _short(self, piece: bytes) -> bytes:
        """Return *piece* without the lines that are too long."""
        kept, start, at = [], 0, 0
        while at < len(piece):
            end = piece.rfind(b"\n", at, at + LONGEST_LINE_BYTES) + 1
            if not end:
                kept.append(piece[start:at])
                end = start = piece.index(b"\n", at) + 1
                self.too_long += 1
            at = end
        return piece if not start else b"".join((*kept, piece[start:]))
