"""The status of a site: whether its pages may be fetched, and why (3.1).

To add an outcome, see "How to add" in docs/architecture.md.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class Ground(Enum):
    """Why a request is allowed or refused."""

    RULE = "rule"
    """The rules of the site, or no matching rule (3.2)."""
    UNRESTRICTED = "unrestricted"
    """There is no /robots.txt (3.1), or KOSTER_RESTRICTED allows a 401 or 403."""
    RESTRICTED = "restricted"
    """The site answered 401 or 403 (3.1)."""
    MISSING = "missing"
    """There is no /robots.txt with a record, and KOSTER_MISSING closes such sites (3.1)."""
    HTML = "html"
    """The /robots.txt is an HTML page, and KOSTER_HTML_ROBOTSTXT disallows that."""
    UNAVAILABLE = "unavailable"
    """The /robots.txt could not be retrieved (3.1)."""
    DELAY = "delay"
    """The delay of the site is longer than KOSTER_CRAWL_DELAY_MAX_SECS."""
    OVERRIDE = "override"
    """An entry of KOSTER_OVERRIDES changes the decision of the site."""
    USAGE = "usage"
    """The robots.txt disallows a purpose of the crawl (KOSTER_USAGE_PURPOSES)."""


class SiteStatus(IntEnum):
    """The status of a site in a crawl. Never change a number: reports store the numbers."""

    ground: Ground
    """The ground of decisions on requests to the site."""
    words: str
    """The name of the status in the summary and the report."""

    def __new__(cls, number: int, ground: Ground, words: str) -> SiteStatus:  # noqa: PYI034
        """Create a member with the value *number*."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.ground, member.words = ground, words
        return member

    OBEYED = 1, Ground.RULE, "with a robots.txt"
    HTML = 2, Ground.RULE, "with an HTML page for robots.txt"
    WITHOUT_RULES = 9, Ground.RULE, "without rules"
    """The file, such as an empty file, a picture or prose, has no line of a robots.txt."""
    WITHOUT_ROBOTS_TXT = 3, Ground.UNRESTRICTED, "without robots.txt"
    RESTRICTED = 4, Ground.RESTRICTED, "restricted"
    MISSING = 7, Ground.MISSING, "missing and disallowed (KOSTER_MISSING)"
    HTML_DISALLOWED = 8, Ground.HTML, "with an HTML page and disallowed (KOSTER_HTML_ROBOTSTXT)"
    UNAVAILABLE = 5, Ground.UNAVAILABLE, "unavailable"
    LET_THROUGH = 6, Ground.UNAVAILABLE, "unavailable and let through"

    @property
    def is_closed(self) -> bool:
        """Whether no page may be fetched, except /robots.txt itself (3.1, 3.2.2)."""
        is_open = (
            self.ground in (Ground.RULE, Ground.UNRESTRICTED) or self is SiteStatus.LET_THROUGH
        )
        return not is_open

    @property
    def may_be_overridden(self) -> bool:
        """Whether paths of KOSTER_OVERRIDES apply: not if a 401, 403 or failure closes the site."""
        return self not in (SiteStatus.RESTRICTED, SiteStatus.UNAVAILABLE)


def status_of_http(status: int) -> SiteStatus:
    """Return the status for an HTTP status alone; UNAVAILABLE for a temporary failure."""
    # 3.1: "If the server response indicates Success (HTTP 2xx Status Code,) the
    # robot must read the content, parse it, and follow any instructions"
    if 200 <= status <= 299:
        return SiteStatus.OBEYED
    # 3.1: "On server response indicating access restrictions (HTTP Status Code
    # 401 or 403) a robot should regard access to the site completely restricted."
    if status in (401, 403):
        return SiteStatus.RESTRICTED
    # 3.1: "indicates the resource does not exist (HTTP Status Code 404)". The
    # draft does not mention other 4xx. Here, the site is unrestricted, except after temporary
    # errors and after 407, which comes from a proxy.
    if 400 <= status <= 499 and status not in (407, 408, 425, 429):
        return SiteStatus.WITHOUT_ROBOTS_TXT
    return SiteStatus.UNAVAILABLE
