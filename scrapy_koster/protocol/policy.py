"""The settings for the meaning of an answer to GET /robots.txt."""

from dataclasses import dataclass, replace
from enum import Enum

from scrapy_koster.protocol.override import Override, current
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.site import Site


class Restricted(Enum):
    """KOSTER_RESTRICTED: the meaning of 401 and 403. The default depends on the reading."""

    DISALLOW = "disallow"
    ALLOW = "allow"


class Missing(Enum):
    """KOSTER_MISSING: the meaning of a missing file, and of a file without a record."""

    ALLOW = "allow"
    DISALLOW = "disallow"


class Html(Enum):
    """KOSTER_HTML_ROBOTSTXT: the meaning of an HTML page without a record."""

    ALLOW = "allow"
    DEFER = "defer"
    DISALLOW = "disallow"


class Unavailable(Enum):
    """KOSTER_UNAVAILABLE: the meaning of a temporary failure."""

    DEFER = "defer"
    ALLOW = "allow"
    DISALLOW = "disallow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings for choices that sections 3.1 and 3.4 leave to the robot."""

    expiry_secs: float = 604800.0
    """Life of a copy without cache headers: 7 days (3.4)."""
    expiry_min_secs: float = 300.0
    expiry_max_secs: float = 2592000.0
    restricted_expiry_secs: float = 3600.0
    """Life of a 401 or 403 without cache headers."""
    stale_if_error_secs: float = 0.0
    defer_first_secs: float = 10.0
    defer_max_secs: float = 600.0
    defer_limit_secs: float = 300.0
    restricted: Restricted = Restricted.DISALLOW
    missing: Missing = Missing.ALLOW
    html: Html = Html.ALLOW
    unavailable: Unavailable = Unavailable.DEFER
    overrides: tuple[Override, ...] = ()
    is_opened: bool = False
    """Whether only an override allows requests to a site that fails (``at``)."""
    standard: Standard = Standard.DRAFT
    """The standard of the parser. It decides on sites without rules, except after 401 and 403."""
    reads_hidden: bool = False
    """Whether the parser obeys hidden and misspelled lines."""

    @property
    def defers(self) -> bool:
        """Whether requests to a site wait after a temporary failure of its robots.txt."""
        return self.unavailable is Unavailable.DEFER

    def at(self, site: Site, now: float) -> "Policy":
        """Return the policy for *site* at the time *now*: another one if an override opens it."""
        if not self.overrides or not any(each.opens for each in current(self.overrides, site, now)):
            return self
        is_opened, allow = self.unavailable is not Unavailable.ALLOW, Unavailable.ALLOW
        return replace(self, restricted=Restricted.ALLOW, unavailable=allow, is_opened=is_opened)
