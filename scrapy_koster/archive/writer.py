"""A WARC file that grows record by record."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from itertools import count
from pathlib import Path
from secrets import token_hex

from scrapy_koster.archive.index import WARC_SUFFIX, index_lines, write_index
from scrapy_koster.archive.record import Record
from scrapy_koster.archive.warc import member_of

FILE_MAX_BYTES = 10**8
"""Size at which a file is closed. The index of an open file, up to half as large, is in memory."""


class Writer:
    """Writes the files of a crawl into *folder*.

    The operating system has each written record, so a record survives a killed process.
    """

    def __init__(self, folder: str, info: bytes, *, began: float) -> None:
        """*info* is the block of the warcinfo record of each file. No file is created yet.

        *began* is the start of the crawl in seconds since the epoch, for the names of files.
        """
        self._folder = Path(folder)
        self._info, self._began = info, began
        time = datetime.fromtimestamp(began, timezone.utc)
        stem = f"koster-{time:%Y%m%dT%H%M%SZ}-{token_hex(4)}"
        self._names = (f"{stem}-{number:05}{WARC_SUFFIX}" for number in count())
        self._file: int | None = None
        self._path = self._folder
        self._size = 0
        self._index: list[bytes] = []
        self._info_id = ""

    def write(self, records: Sequence[Record]) -> None:
        """Append *records*, all or none. Raises OSError if writing fails."""
        file = self._file
        if file is None:
            file, records = self._begin(records)
        members, lines, size = [], [], self._size
        for record in records:
            info = {} if record.id == self._info_id else {"WARC-Warcinfo-ID": self._info_id}
            members.append(member_of(replace(record, more={**info, **record.more})))
            place = {"offset": size, "length": len(members[-1])}
            lines += index_lines(record, **place, filename=self._path.name)
            size += len(members[-1])
        left = memoryview(b"".join(members))
        try:
            while left:  # one call if possible, so a killed process leaves whole records
                left = left[os.write(file, left) :]
        except OSError:
            self._undo(file)
            raise
        self._size = size
        self._index += lines
        if size >= FILE_MAX_BYTES:
            with suppress(OSError):  # ``index_of`` makes a missing index
                self.close()

    def close(self) -> None:
        """Close the open file, and write the index. Raises OSError."""
        if self._file is None:
            return
        file, self._file = self._file, None
        os.close(file)
        write_index(self._path, self._index, self._size)

    def _begin(self, records: Sequence[Record]) -> tuple[int, list[Record]]:
        """Open a new file. Return the file, and the warcinfo record followed by *records*."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = next(self._names)
        self._path = self._folder / name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self._file = os.open(self._path, flags, 0o600)
        self._size, self._index = 0, []
        more = {"WARC-Filename": name}
        fields = "application/warc-fields"
        info = Record("warcinfo", self._began, self._info, fields, more=more)
        self._info_id = info.id
        return self._file, [info, *records]

    def _undo(self, file: int) -> None:
        """Cut off a failed write, and delete an empty file. A deleted or uncut file is closed."""
        with suppress(OSError):
            os.ftruncate(file, self._size)
            if self._size:
                return
            self._path.unlink()
        self._file = None
        with suppress(OSError):
            os.close(file)
