"""Reads a list of URLs and hosts, one per line. The list can be long and have invalid lines."""

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from io import BufferedReader, BytesIO

from scrapy import Request

from scrapy_koster.audit.logfile import pieces
from scrapy_koster.commands.subcommand import HAS_SCHEME, HOST
from scrapy_koster.protocol.path import origin_and_path
from scrapy_koster.protocol.site import site_of

LINE_MAX_BYTES = 8192
"""A longer line is invalid."""

_CACHE_KIB = 20_000
_PIECE_BYTES = 1 << 16


class Seeds:
    """The URLs of a list without duplicates, by site, with the sites in the order of a hash.

    The URLs are in a temporary file, so memory is bounded. Neighboring sites in a list often have
    the same owner. The hash separates the sites of an owner.
    """

    def __init__(self) -> None:
        self.counts = {"lines": 0, "skipped": 0, "broken": 0, "repeated": 0}
        """Numbers of lines: in total, blank or comment, invalid, and with a duplicate URL."""
        self.hosts = 0
        """Number of valid lines without a scheme."""
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        self._db.execute(
            "CREATE TABLE seeds (site INTEGER, url TEXT, PRIMARY KEY (site, url)) WITHOUT ROWID"
        )
        self._db.execute("BEGIN")

    def __len__(self) -> int:
        counts = self.counts
        return counts["lines"] - counts["skipped"] - counts["broken"] - counts["repeated"]

    def read(self, file: BufferedReader) -> Iterator[str]:
        """Add the lines of *file*, which may be compressed. Yield messages about invalid lines.

        The messages are printable. Raises ValueError if *file* cannot be read to the end.
        """
        for piece in pieces(file, _PIECE_BYTES):
            for line in BytesIO(piece):
                self.counts["lines"] += 1
                try:
                    self._add(line)
                except ValueError as error:
                    self.counts["broken"] += 1
                    yield f"line {self.counts['lines']}: {error}"

    def _add(self, line: bytes) -> None:
        if len(line) > LINE_MAX_BYTES:
            raise ValueError(f"longer than {LINE_MAX_BYTES} bytes")
        try:
            text = line.decode("utf-8-sig" if self.counts["lines"] == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise ValueError("not UTF-8") from None
        if not text or text.startswith("#"):
            self.counts["skipped"] += 1
            return
        site, url = url_of(text)
        self.hosts += not HAS_SCHEME.match(text)
        added = self._db.execute("INSERT OR IGNORE INTO seeds VALUES (?, ?)", (_number(site), url))
        self.counts["repeated"] += not added.rowcount

    def firsts(self) -> Iterator[tuple[int, str]]:
        """Return the number (for ``rest``) and the first URL of each site."""
        return self._db.execute("SELECT site, MIN(url) FROM seeds GROUP BY site ORDER BY site")

    def rest(self, site: int, first: str) -> Iterator[str]:
        """Return the URLs of the site with the number *site*, without the URL *first*."""
        found = self._db.execute(
            "SELECT url FROM seeds WHERE site = ? AND url > ? ORDER BY url", (site, first)
        )
        return (url for (url,) in found)

    def close(self) -> None:
        """Close and remove the temporary file."""
        self._db.close()


def url_of(text: str) -> tuple[str, str]:
    """Return the site and the URL of a line.

    A host becomes an https URL. User names and passwords are removed. Raises ValueError if the line
    is invalid. The message has no text of the line.
    """
    if not text.isprintable():
        raise ValueError("contains unprintable characters")
    try:
        url = Request(text if HAS_SCHEME.match(text) else f"https://{text}").url
        site = site_of(url)
    except ValueError:
        site = None
    if site is None or not HOST.fullmatch(site.host):
        raise ValueError("neither an http or https URL nor a host")
    return str(site), f"{site}{origin_and_path(url)[1]}"


def _number(site: str) -> int:
    return int.from_bytes(blake2b(site.encode(), digest_size=8).digest(), "big", signed=True)
