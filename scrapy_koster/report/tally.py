"""The tables of a report's file, and the rows that have not been written yet."""

from typing import Any, NamedTuple

from scrapy_koster.protocol.site_status import Ground, SiteStatus

START, OVERRIDDEN, HAZARD, USAGE = "start", "overridden", "hazard", "usage_dropped"
"""Kinds of sample URLs: refused start requests, requests allowed by an override, allowed pages
that RFC 9309 or a hidden line forbids, and pages that must not be used for a purpose of the crawl.
Further kinds are the grounds of refusals, nofollow, noindex and exempt_forbidden."""

ALLOWED = {
    SiteStatus.OBEYED: "allowed_rule",
    SiteStatus.WITHOUT_RULES: "allowed_without_rules",
    SiteStatus.WITHOUT_ROBOTS_TXT: "allowed_none",
    SiteStatus.HTML: "allowed_html",
    SiteStatus.LET_THROUGH: "allowed_unavailable",
}
"""Columns of allowed requests, by the outcome of the site."""

REFUSED = {
    ground.value: f"refused_{ground.value}"
    for ground in Ground
    if ground is not Ground.UNRESTRICTED
}
"""Columns of refused requests, by the name of the ground."""

FACTS = (
    "outcome",
    "status",  # of the last answer, or 0
    "fetched",
    "expires",
    "bytes",
    "digest",  # of the body as received, as in an archive
    "record_line",  # of the obeyed record; 0 without one, -1 if the parser has no records
    "record",
    "delay",  # Crawl-delay of the record
    "redirect",
    "reason",  # of the last failure
    "deferred",  # time of the last deferral
    "resumed",  # time of the end of the last deferral, or 0
)
"""Columns of a site with its last state. Times are in seconds since the epoch."""

COUNTS = (
    "asked",
    "answered",
    "fetches",
    "from_storage",
    "renewed",
    *ALLOWED.values(),
    *REFUSED.values(),
    "start_refused",
    "overridden",  # requests that an override allowed
    "allowed_restricted",  # allowed though the robots.txt answers 401 or 403
    "deferrals",
    "given_up",
    "nofollow",
    "noindex",
    "exempt",  # dont_obey_robotstxt
    "exempt_forbidden",  # exempt requests that known rules forbid
    "looser",  # allowed, but forbidden by RFC 9309
    "stricter",  # refused by a rule, but allowed by RFC 9309
    USAGE,
    "cut",
)
"""Columns of a site with sums."""


class Columns(NamedTuple):
    """The columns of a table."""

    keys: tuple[str, ...]
    facts: tuple[str, ...] = ()
    """Columns where a new value replaces the old value."""
    counts: tuple[str, ...] = ()
    """Columns where a new value is added to the old value."""


TABLES = {
    "site": Columns(("site",), FACTS, COUNTS),
    "rule": Columns(("site", "line", "text", "ground"), counts=("refused", "stricter")),
    "hazard": Columns(("site", "cause", "line", "text", "allows"), counts=("pages",)),
    "usage": Columns(("site", "line", "text", "label"), ("preference",)),
    "sample": Columns(("site", "kind", "line", "number"), ("url",)),
    "override": Columns(("site", "text"), counts=("allowed", "refused")),
    "failure": Columns(("reason",), counts=("attempts",)),
    "about": Columns(("name",), ("value",)),
}

_MOST = 10_000


class Tally:
    """Rows since the last written batch, by table and key.

    A table has 10,000 rows at most, in case batches cannot be written. Changes to further rows are
    dropped, and counted in ``lost``. Texts are printable and cut.
    """

    def __init__(self) -> None:
        self.lost = 0
        self.clear()

    def clear(self) -> None:
        """Delete the rows, for example after a batch is written."""
        self.rows: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {name: {} for name in TABLES}

    def put(self, table: str, *key: object, **facts: object) -> None:
        """Set *facts* of a row."""
        self._row(table, key).update(facts)

    def add(self, table: str, *key: object, **counts: int) -> None:
        """Add *counts* to the counts of a row."""
        row = self._row(table, key)
        for column, count in counts.items():
            row[column] = row.get(column, 0) + count

    def _row(self, table: str, key: tuple[object, ...]) -> dict[str, Any]:
        rows = self.rows[table]
        if key not in rows and len(rows) >= _MOST:
            self.lost += 1
            return {}
        return rows.setdefault(key, {})
