"""The user's exceptions to the robots.txt of a site (KOSTER_OVERRIDES).

Neither standard has such exceptions. So an override names one site, a reason and a last day, and
decides only on paths. A site that is closed by 401 or 403, or because its robots.txt is
unavailable, stays closed, unless an override opens it ("unavailable": "allow").
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from typing import Any

from scrapy_koster.protocol.path import is_robots_txt, url_path
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.ruling import Ruling
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.wording import TEXT_CHARS

_KEYS = ("site", "allow", "disallow", "unavailable", "reason", "until")
_NO_PREFIX = re.compile(r"[*#\s\x00-\x1f\x7f]|\$$")
_ORIGIN = re.compile(r"https?://[^\s/?#@*\\]+/?", re.IGNORECASE)
_REASON_CHARS = 300
_DAY_SECS = 86400


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """An exception to the robots.txt of one site."""

    site: Site
    allow: tuple[str, ...] = ()
    """Beginnings of the allowed paths, decoded by ``url_path``."""
    disallow: tuple[str, ...] = ()
    """Beginnings of the forbidden paths, decoded by ``url_path``."""
    opens: bool = False
    """Whether the site is open if a 401, a 403 or a failure would close it."""
    reason: str
    until: date
    """The last day of the override, in UTC."""

    @property
    def ends(self) -> float:
        """Time of expiry, in seconds since the epoch: the end of the last day."""
        return datetime.combine(self.until, time.min, timezone.utc).timestamp() + _DAY_SECS

    def __str__(self) -> str:
        """Return the reason and the last day, safe to print."""
        return f"{printable(self.reason, _REASON_CHARS)}, until {self.until.isoformat()}"

    def because(self, ruling: Ruling) -> str:
        """Return the override in words, and the opposite decision of the site.

        *ruling* has the decision by the override, and the site's opposite rule, if any.
        """
        says = f"without it this would be {'forbidden' if ruling.allowed else 'allowed'}"
        if ruling.rule:
            verb = "forbids" if ruling.allowed else "allows"
            says = f"the site's line {ruling.rule.number} {verb} it"
        return f"your override: {self}; {says}"

    def to_dict(self) -> dict[str, Any]:
        """Return the site, the reason and the last day as a dict for JSON."""
        reason = printable(self.reason, TEXT_CHARS)
        return {"site": str(self.site), "reason": reason, "until": self.until.isoformat()}


def current(overrides: Sequence[Override], site: Site, now: float) -> list[Override]:
    """Return the *overrides* of *site* that have not expired at *now*."""
    return [each for each in overrides if each.site == site and now < each.ends]


def choice(
    url: str | bytes, overrides: Sequence[Override], *, is_closed: bool = False
) -> tuple[bool, Override] | None:
    """Return (allowed, override) if one of the *overrides* of a site decides on *url*, or None.

    The longest matching path decides. Of two equal paths, the path in "disallow" decides. If the
    site *is_closed*, one of the overrides has to open it, and then decides on other paths. The
    result for /robots.txt is None: the URL is always allowed (3.2.2).
    """
    is_open = not is_closed or any(each.opens for each in overrides)
    if not overrides or not is_open or is_robots_txt(url):
        return None
    path = url_path(url)
    matching = [
        (len(prefix), not allowed, (allowed, each))
        for each in overrides
        for allowed, prefixes in (
            (True, (*each.allow, "") if is_closed and each.opens else each.allow),
            (False, each.disallow),
        )
        for prefix in prefixes
        if path.startswith(prefix)
    ]
    return max(matching, key=lambda match: match[:2])[2] if matching else None


# Overrides from the settings.


def overrides_of(entries: Any) -> tuple[Override, ...]:
    """Return the overrides in *entries*, a list of mappings.

    Raises ValueError, which names the first invalid entry and the reason.
    """
    if not isinstance(entries, (list, tuple)):
        raise ValueError(  # noqa: TRY004  # shown as invalid setting
            'it is not a list of entries such as {"site": "https://example.com", "allow": ["/a"],'
            ' "reason": "agreed", "until": "2027-12-31"}'
        )
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            found.append(_override(entry))
        except ValueError as error:
            shown = printable(repr(entry), _REASON_CHARS)
            raise ValueError(f"entry {number}, {shown}: {error}") from None
    return tuple(found)


def _override(entry: Any) -> Override:
    if not isinstance(entry, Mapping):
        raise ValueError("it is not a dictionary")  # noqa: TRY004
    for key in entry:
        if key not in _KEYS:
            raise ValueError(f"{printable(repr(key))} is not a key of an entry")
    for key in ("site", "reason", "until"):
        if key not in entry:
            raise ValueError(f'it has no "{key}"')
    allow, disallow = _paths(entry, "allow"), _paths(entry, "disallow")
    if (unavailable := entry.get("unavailable")) not in (None, "allow"):
        raise ValueError(f'"unavailable" is {printable(repr(unavailable))}, and not "allow"')
    if not (allow or disallow or unavailable):
        raise ValueError('it has neither "allow" nor "disallow" nor "unavailable"')
    return Override(
        site=_site(entry["site"]),
        allow=allow,
        disallow=disallow,
        opens=unavailable is not None,
        reason=_reason(entry["reason"]),
        until=_until(entry["until"]),
    )


def _site(value: Any) -> Site:
    with suppress(ValueError):
        if isinstance(value, str) and _ORIGIN.fullmatch(value) and (site := site_of(value)):
            return site
    raise ValueError(
        f"the site {printable(repr(value))} is not the origin of one site, such as"
        ' "https://example.com"'
    )


def _paths(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = entry.get(key, ())
    if not isinstance(values, (list, tuple)):
        raise ValueError(f'"{key}" is not a list of paths')  # noqa: TRY004
    for value in values:
        if not isinstance(value, str) or value[:1] != "/" or _NO_PREFIX.search(value):
            raise ValueError(
                f'{printable(repr(value))} in "{key}" is not the beginning of a path, such as'
                ' "/private". Wildcards have no meaning here: a star is %2A, a dollar at the end'
                " %24"
            )
    return tuple(url_path(f"http://site{value}") for value in values)


def _reason(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"the reason {printable(repr(value))} is no text")
    return value.strip()


def _until(value: Any) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    with suppress(ValueError):
        if isinstance(value, str) and (day := date.fromisoformat(value)).isoformat() == value:
            return day
    raise ValueError(f'until = {printable(repr(value))} is not a date such as "2027-01-31"')
