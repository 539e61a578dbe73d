"""Reading logs that may take hours: shown while it goes on, and ended by Ctrl-C with its result."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from typing import Any


class _Ended(Exception):
    """The user has ended a read that waits for a byte."""


class Reading:
    """Files that all come to their end when the user presses Ctrl-C."""

    def __init__(self, show: Callable[..., None]) -> None:
        self.ended = False
        """Whether the user has."""
        self._bytes = 0
        self._show = show
        self._waits = False

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Take Ctrl-C for the end of the files; a second one ends the program."""
        before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _interrupted(self, *_: object) -> None:
        if self.ended:
            raise KeyboardInterrupt
        self.ended = True
        if self._waits:
            raise _Ended

    def read(self, file: BufferedReader, size: int) -> bytes:
        """Return at most *size* bytes of *file*, none once the user has ended it.

        It does not wait for more than a pipe has: Ctrl-C would lose that.
        """
        try:
            self._waits = True
            data = b"" if self.ended else file.read1(size)
        except _Ended:
            return b""
        finally:
            self._waits = False
        self._bytes += len(data)
        self._show(read=self._bytes)
        return data


class LogReader(RawIOBase):
    """A file that is read by a Reading."""

    def __init__(self, file: BufferedReader, reading: Reading) -> None:
        self._file = file
        self._reading = reading

    def fileno(self) -> int:
        """Return the number of the file."""
        return self._file.fileno()

    def tell(self) -> int:
        """Return how many bytes of the file were read."""
        return self._file.tell()

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read bytes into *buffer*."""
        data = self._reading.read(self._file, len(buffer))
        buffer[: len(data)] = data
        return len(data)
