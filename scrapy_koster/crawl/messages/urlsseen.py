"""Which URLs were counted already, in a table that does not grow."""

from __future__ import annotations

from array import array

_WAYS = 4
_SLOTS = 1 << 20  # of 8 octets


class UrlsSeen:
    """Remembers about the last million URLs, by their hashes: 8 MiB.

    A URL may be forgotten when more have come since. It is then new once more.
    """

    def __init__(self, slots: int = _SLOTS) -> None:
        """*slots* is a power of 2."""
        self._sets = slots // _WAYS
        self._slots: array[int] | None = None

    def is_new(self, url: str) -> bool:
        """Return whether *url* has not been seen, and remember it."""
        if self._slots is None:  # most crawls need none
            self._slots = array("q", bytes(8 * _WAYS)) * self._sets
        found = hash(url) or 1
        start = found % self._sets * _WAYS
        ways = self._slots[start : start + _WAYS]
        if found in ways:
            return False
        # The oldest of its set goes.
        self._slots[start : start + _WAYS] = array("q", (found, *ways[:-1]))
        return True
