"""What was counted and is not written yet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sized
from typing import Any, TypeVar

from scrapy_koster.protocol.standing import Ground, Standing
from scrapy_koster.protocol.usage import Stated

SAMPLES = 5
"""URLs that are kept of a kind, for each site or line."""

_Key = TypeVar("_Key")

_URL_CHARS = 300
_MOST = 10_000
_RANKS = 1 << 32


START, NOFOLLOW, NOINDEX = "start", "nofollow", "noindex"
OVERRIDDEN, HAZARD, USAGE = "overridden", "hazard", "usage_dropped"
EXEMPT_FORBIDDEN = "exempt_forbidden"
"""What URLs are samples of, besides the grounds of refusals: refused start requests, pages of which
requests or items were dropped, what an override of the user has allowed, pages that were let
through and that RFC 9309 forbids, pages that may not be used for a purpose of the crawl, and
forbidden requests that are exempt."""

ALLOWED = {
    Standing.OBEYED: "allowed_rule",
    Standing.WITHOUT_RULES: "allowed_without_rules",
    Standing.WITHOUT_ROBOTS_TXT: "allowed_none",
    Standing.HTML: "allowed_html",
    Standing.LET_THROUGH: "allowed_unavailable",
}
"""Columns that count the requests that were allowed, by what their site is."""

REFUSED = {
    ground.value: f"refused_{ground.value}"
    for ground in Ground
    if ground is not Ground.UNRESTRICTED
}
"""Columns that count the requests that were refused, by the name of the ground."""

FACTS = (
    "outcome",
    "status",  # of the last answer; 0: there was none
    "fetched",
    "expires",
    "bytes",
    "crc",  # of the file
    "digest",  # of the body as it was received: what its record in an archive has
    "record_line",  # of the record that is obeyed; 0: there is none
    "record",
    "delay",  # Crawl-delay of that record
    "redirect",
    "reason",  # of the last failure
    "deferred",  # when that last began
    "resumed",  # when it ended; 0: it has not
)
"""Columns of a site that hold what was last known; times in seconds since the epoch."""

COUNTS = (
    "asked",
    "answered",
    "fetches",
    "from_storage",
    "renewed",
    *ALLOWED.values(),
    *REFUSED.values(),
    "start_refused",
    "overridden",  # of the requests that were allowed: by an override
    "deferrals",
    "given_up",
    "nofollow",
    "noindex",
    "exempt",  # dont_obey_robotstxt
    EXEMPT_FORBIDDEN,  # of these, as far as the rules were known
    "looser",  # let through, and RFC 9309 forbids it
    USAGE,
    "cut",
)
"""Columns of a site that are added up."""


class Tally:
    """Counts and facts of sites since the last batch was written.

    It holds 10,000 of a kind at most: where batches cannot be written, what is
    beyond that is counted as ``lost``. Texts have been made printable and cut.
    """

    def __init__(self) -> None:
        self.sites: dict[str, dict[str, Any]] = {}
        self.rules: Counter[tuple[str, int, str]] = Counter()
        self.hazards: Counter[tuple[str, str, int, str, str]] = Counter()
        """By site, cause, line and text of the rule of RFC 9309, and the draft's rule."""
        self.stated: dict[tuple[str, int, str], Stated] = {}
        """What sites state, by site, line and text."""
        self.samples: dict[tuple[str, str, int], list[tuple[int, str]]] = {}
        """By site, kind and line: a rank by chance, and the URL."""
        self.failures: Counter[str] = Counter()
        self.overrides: Counter[tuple[str, str, str]] = Counter()
        """By site, text of the override, and "allowed" or "refused": the settings bound them."""
        self.minute: Counter[str] = Counter()
        self.compared: list[tuple[bytes, str, str | bytes, bool]] = []
        """Decisions to compare with those of RFC 9309: the file, the URL, the robot, the answer."""
        self.lost = 0

    def __len__(self) -> int:
        kept: list[Sized] = [self.sites, self.rules, self.hazards, self.stated, self.samples]
        return max(map(len, kept))

    def row(self, site: str) -> dict[str, Any]:
        """Return what is known of *site*, to be changed."""
        row = self.sites.get(site)
        if row is None:
            row = {}
            if len(self.sites) < _MOST:
                self.sites[site] = row
            else:
                self.lost += 1
        return row

    def count(self, site: str, column: str, count: int = 1) -> None:
        """Add to one of the COUNTS of *site*."""
        row = self.row(site)
        row[column] = row.get(column, 0) + count

    def refused_by(self, site: str, line: int, text: str) -> None:
        """Count a request that a line of the site's file has refused."""
        self._add(self.rules, (site, line, text))

    def hazard(self, site: str, cause: str, line: int, text: str, allows: str) -> None:
        """Count a page that a line of RFC 9309 forbids; *allows* is the draft's line, with text."""
        self._add(self.hazards, (site, cause, line, text, allows))

    def _add(self, counter: Counter[_Key], key: _Key) -> None:
        if key in counter or len(counter) < _MOST:
            counter[key] += 1
        else:
            self.lost += 1

    def stated_by(self, site: str, line: int, text: str, stated: Stated) -> None:
        """Keep what a line of the site's file states of the use of its pages."""
        if len(self.stated) < _MOST:
            self.stated[site, line, text] = stated
        else:
            self.lost += 1

    def sample(self, site: str, kind: str, line: int, url: str) -> None:
        """Keep *url* as one of five that chance has chosen out of all that come here.

        Those with the lowest ranks are chosen, so what several batches have
        kept comes to the same as if it had been one.
        """
        rank = random.randrange(_RANKS)
        kept = self.samples.get((site, kind, line))
        if kept is None:
            if len(self.samples) < _MOST:
                self.samples[site, kind, line] = [(rank, url[:_URL_CHARS])]
        elif len(kept) < SAMPLES or rank < kept[-1][0]:
            kept.append((rank, url[:_URL_CHARS]))
            kept.sort()
            del kept[SAMPLES:]
