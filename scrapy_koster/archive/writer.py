"""A WARC file that grows record by record."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from secrets import token_hex

from scrapy_koster.archive.index import WARC_SUFFIX, Index, index_path
from scrapy_koster.archive.record import Record, member_of

FILE_MAX_BYTES = 10**9
"""A file that has grown beyond this is followed by another."""


class Writer:
    """The files of one crawl in *folder*. Each record is on its way to the disk when it is written:
    whoever kills the process afterwards does not lose it.
    """

    def __init__(
        self,
        folder: str,
        info: Callable[[str], Record],
        *,
        began: float,
        max_bytes: int = FILE_MAX_BYTES,
    ) -> None:
        """*info* returns the warcinfo record of a file with this name. Nothing is written yet.

        *began* is when the crawl began, in seconds since the epoch: the names have it.
        """
        self._folder = Path(folder)
        self._info = info
        self._max_bytes = max_bytes
        time = datetime.fromtimestamp(began, timezone.utc)
        self._stem = f"koster-{time:%Y%m%dT%H%M%SZ}-{token_hex(4)}"
        self._number = 0
        self._file: int | None = None
        self._path = self._folder
        self._size = 0
        self._index = Index()
        self.info_id = ""
        """The ID of the warcinfo record of the file that is open."""

    def open(self) -> None:
        """Begin a file, unless one is open. Raises OSError if that fails."""
        if self._file is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._stem}-{self._number:05}{WARC_SUFFIX}"
        self._number += 1
        self._path = self._folder / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(self._path, flags, 0o600)
        self._size, self._index = 0, Index()
        info = self._info(name)
        self.info_id = info.id
        self._append([info])

    def write(self, records: Sequence[Record]) -> None:
        """Append *records*: all of them, or none. Raises OSError if that fails."""
        self.open()
        self._append(records)
        if self._size >= self._max_bytes:
            with suppress(OSError):  # of the index, which readers make if it is missing
                self.close()

    def close(self) -> None:
        """End the file that is open, and write its index beside it. Raises OSError."""
        if self._file is None:
            return
        file, self._file = self._file, None
        try:
            os.close(file)
            self._index.write(index_path(self._path), self._size)
        finally:
            self._index.close()

    def _append(self, records: Sequence[Record]) -> None:
        assert self._file is not None
        members = [member_of(record) for record in records]
        try:
            write_all(self._file, b"".join(members))
        except OSError:
            self._undo(self._file)
            raise
        for record, member in zip(records, members, strict=True):
            self._index.add(record, offset=self._size, length=len(member), filename=self._path.name)
            self._size += len(member)

    def _undo(self, file: int) -> None:
        """Take away what a write that failed has left of a record, or leave the file as it is."""
        try:
            os.ftruncate(file, self._size)
            if self._size:
                return
            self._path.unlink()
        except OSError:
            pass
        self._file = None
        self._index.close()
        with suppress(OSError):
            os.close(file)


def write_all(file: int, octets: bytes) -> None:
    """Write all of *octets*, if possible in one call: a kill leaves whole records then."""
    left = memoryview(octets)
    while left:
        left = left[os.write(file, left) :]
