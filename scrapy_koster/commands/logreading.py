"""Reading logs that may take hours: shown while it goes on, and ended by Ctrl-C with its result."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast


class _Ended(Exception):
    """The user has ended what waits for a byte."""


class Reading:
    """Files that all come to their end when the user presses Ctrl-C."""

    def __init__(self, show: Callable[..., None]) -> None:
        self.ended = False
        """Whether the user has."""
        self.octets = 0
        """How many were read."""
        self._show = show
        self._waits = False

    @contextmanager
    def until_interrupted(self) -> Iterator[None]:
        """Take Ctrl-C for the end of the files; a second one ends the program."""
        before: Any = None
        with suppress(ValueError):  # not in the main thread: nobody can press it
            before = signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            if before is not None:
                signal.signal(signal.SIGINT, before)

    def _interrupted(self, *_: object) -> None:
        if self.ended:
            raise KeyboardInterrupt
        self.ended = True
        if self._waits:
            raise _Ended

    def file(self, file: BinaryIO) -> BinaryIO:
        """Return *file*, to be read as long as the user lets it."""
        return cast("BinaryIO", _File(file, self))

    def read(self, file: BinaryIO, size: int) -> bytes:
        """Return *size* octets of *file* at most, none at its end or once the user has ended it.

        What a pipe has is not waited for to be more: it would be lost with Ctrl-C.
        """
        try:
            self._waits = True
            data = b"" if self.ended else file.read1(size)  # type: ignore[attr-defined]
        except _Ended:
            return b""
        finally:
            self._waits = False
        self.octets += len(data)
        self._show(read=self.octets)
        return data


class _File:
    """What of a file is used to read a log."""

    def __init__(self, file: BinaryIO, reading: Reading) -> None:
        self._file = file
        self._reading = reading
        self.fileno = file.fileno
        self.tell = file.tell

    def read(self, size: int) -> bytes:
        return self._reading.read(self._file, size)
