"""3.1, the access method: the meaning of an answer to GET /robots.txt.

``after_answer`` returns the new copy or failure of a site. From a copy or failure, ``next_step``
(step.py) decides whether a request to the site goes on, waits or is refused.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias
from urllib.parse import urldefrag, urljoin

from scrapy_koster.protocol.exchange import Exchange, digest_of
from scrapy_koster.protocol.freshness import retry_after, stated_life
from scrapy_koster.protocol.html_page import ORDINARY, page_in_place
from scrapy_koster.protocol.line import plain
from scrapy_koster.protocol.misspelling import has_other_record, may_have_lines
from scrapy_koster.protocol.no_answer import why_no_answer
from scrapy_koster.protocol.policy import Html, Missing, Policy, Restricted
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.records import has_record
from scrapy_koster.protocol.site import site_of
from scrapy_koster.protocol.site_status import SiteStatus, status_of_http

_VALIDATOR_CHARS = 1000
_JITTER = 0.25
# Tolerance for clocks that differ: a stored time more than a minute ahead is wrong.
_SKEW_SECS = 60.0
# An attempt within this time after a failure always continues the series of failures.
_LAG_SECS = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to a request for /robots.txt, after redirects."""

    url: str
    """The URL that answered."""
    status: int
    headers: Mapping[str, str]
    """Names in lower case; repeated fields are joined by a comma."""
    body: bytes = b""
    cut_bytes: int | None = None
    """The limit in bytes at which the body was cut. None for a complete body."""
    digest: str = ""
    """Digest of the received bytes, before decoding and the cut to whole lines."""
    exchanges: tuple[Exchange, ...] = field(default=(), compare=False)
    """The requests and responses, with redirects, in order. Empty without KOSTER_ARCHIVE."""
    proxy: str = field(default="", compare=False)
    """The proxy to which the request was sent, without credentials, or ""."""

    def __repr__(self) -> str:
        """Return a short and printable text for logs (section 6)."""
        return f"<{self.status} {printable(self.url)}, {len(self.body)} bytes>"


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A request for /robots.txt that ended without a readable response."""

    reason: str
    is_defect: bool = False
    """Whether the robot failed, not the site."""
    no_such_host: bool = False
    """Whether the name of the host does not exist, so the host has no pages."""
    exchanges: tuple[Exchange, ...] = field(default=(), compare=False)
    """The requests and responses before the failure, in order. Empty without KOSTER_ARCHIVE."""
    proxy: str = field(default="", compare=False)
    """The proxy to which the request was sent, without credentials, or ""."""


@dataclass(frozen=True, slots=True)
class CachedRobots:
    """A stored response to /robots.txt (3.4), with the data to obey and revalidate the copy."""

    url: str
    """The URL that answered, after redirects."""
    status: int
    body: bytes
    """The file of a 2xx answer; empty for another status."""
    etag: str | None
    last_modified: str | None
    fetched: float
    """When the copy was last fetched or revalidated, in seconds since the epoch."""
    expires: float
    """When the copy expires, in seconds since the epoch."""
    cut_bytes: int | None = None
    """The size limit at which the file was cut, None if the body is complete."""
    life_stated: bool = False
    """Whether cache headers set the lifetime. If not, the policy's default applies."""
    digest: str = ""
    """Digest of the body as received. The default is the digest of ``body``."""
    record_id: str | None = None
    """WARC-Record-ID of the archived record with the body, or None."""

    def __post_init__(self) -> None:
        """Set ``digest`` to the digest of ``body`` if it was not given."""
        if not self.digest:
            object.__setattr__(self, "digest", digest_of(self.body))

    @property
    def in_utf8(self) -> bytes:
        """The body for parsers. UTF-16 and UTF-32 are converted to UTF-8.

        If the body is an HTML page in which a browser shows a text file, this is only the text.
        """
        return plain(self.body)

    def __repr__(self) -> str:
        """Return a short and printable text for logs (section 6)."""
        return f"<copy of {printable(self.url)}, HTTP {self.status}, {len(self.body)} bytes>"


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """A temporary failure: the /robots.txt of a site could not be retrieved (3.1)."""

    reason: str
    attempts: int
    """Number of consecutive failed attempts."""
    since: float
    """Time of the first of these failures, in seconds since the epoch.

    It can be in an earlier run, if a JOBDIR has requests that wait since then.
    """
    asked: float
    """Time of the last failure, in seconds since the epoch."""
    retry: float
    """Earliest time of the next attempt, in seconds since the epoch."""
    stale: CachedRobots | None
    """The last good copy, if any."""
    is_defect: bool = False
    """Whether the robot failed, not the site. If so, KOSTER_UNAVAILABLE does not open the site."""
    no_such_host: bool = False
    """Whether the host does not exist. If so, requests do not wait for a retry."""


CacheEntry: TypeAlias = CachedRobots | FetchFailure
"""The result of the last attempt for a site, kept in memory and in the storage."""


def status_of_copy(copy: CachedRobots, policy: Policy) -> SiteStatus:
    """Return the status of a site with *copy*."""
    stated = status_of_http(copy.status)
    if stated is SiteStatus.RESTRICTED:
        disallowed = policy.restricted is Restricted.DISALLOW
        return SiteStatus.RESTRICTED if disallowed else SiteStatus.WITHOUT_ROBOTS_TXT
    # 3.1: "the robot can assume no instructions are available". A Russian text on the draft: where
    # the file "is empty, does not conform to the format and semantics, or is missing, then search
    # robots act according to their settings".
    is_file = stated is SiteStatus.OBEYED
    page = page_in_place(copy.body) if is_file else None
    if page and policy.html is Html.DISALLOW:
        return SiteStatus.HTML_DISALLOWED
    if policy.missing is Missing.DISALLOW and not (is_file and has_record(copy.body)):
        return SiteStatus.MISSING
    if page:
        is_obeyed = policy.reads_hidden and has_other_record(copy.body)
        return SiteStatus.OBEYED if is_obeyed else SiteStatus.HTML
    return SiteStatus.WITHOUT_RULES if is_file and not may_have_lines(copy.body) else stated


def why_not_obeyed(copy: CachedRobots, policy: Policy) -> str | None:
    """Return the reason why a copy counts as a temporary failure, or None.

    A challenge page is a failure, because a later attempt may get the file. This depends on
    KOSTER_HTML_ROBOTSTXT: with "defer", any HTML page without a record is a failure. With
    "disallow", no page is a failure.
    """
    if status_of_http(copy.status) is not SiteStatus.OBEYED:
        return None
    page = page_in_place(copy.body)
    # RFC 9110, 15.3.3: the response to 202 "is intentionally noncommittal".
    if copy.status == 202 and (page or not may_have_lines(copy.body)):
        return "HTTP 202, which is no final answer, without rules"
    if policy.html is Html.DISALLOW:
        return None
    if page is None or (page == ORDINARY and policy.html is not Html.DEFER):
        return None
    return f"HTTP {copy.status}, {page}"


def redirect_target(answer: Answer) -> str | None:
    """Return the http or https URL to which *answer* redirects, or None."""
    # 3.1: "On server response indicating Redirection (HTTP Status Code 3XX) a
    # robot should follow the redirects until a resource can be found."
    location = answer.headers.get("location", "").strip()
    is_redirect = answer.status in (301, 302, 303, 307, 308) and location
    if not is_redirect or why_no_answer(answer):
        return None
    try:
        target = urldefrag(urljoin(answer.url, location)).url
        return None if site_of(target) is None else target
    except ValueError:
        return None


def conditional_headers(copy: CachedRobots | None) -> dict[str, str]:
    """Return headers to revalidate *copy* at its URL (3.4). Empty without a copy or validator."""
    if copy is None:
        return {}
    fields = {"If-None-Match": copy.etag, "If-Modified-Since": copy.last_modified}
    return {name: value for name, value in fields.items() if value is not None}


def after_answer(
    result: Answer | NoAnswer,
    known: CacheEntry | None,
    *,
    now: float,
    policy: Policy,
    jitter: float,
    began: float | None = None,
) -> CacheEntry:
    """Return the new copy or failure of a site after *result*.

    *known* is the previous copy or failure of the site, or None.
    *jitter*, 0 to 1, lengthens the back-off of a failure by up to a quarter.
    *began* is the time when the attempt began, in seconds since the epoch. The default is *now*.
    """
    copy = _received(result, known, now=now, policy=policy)
    reason = copy if isinstance(copy, str) else why_not_obeyed(copy, policy)
    if isinstance(copy, CachedRobots) and reason is None:
        return copy
    # 3.1: "On the request attempt resulted in temporary failure a robot should
    # defer visits to the site until such time as the resource can be retrieved."
    previous = _series(known, began=now if began is None else began, now=now, policy=policy)
    attempts = 1 if previous is None else previous.attempts + 1
    backoff = policy.defer_first_secs * 2.0 ** min(attempts - 1, 64)
    backoff = min(backoff, policy.defer_max_secs) * (1 + _JITTER * jitter)
    asked = None if isinstance(result, NoAnswer) else retry_after(result.headers, now=now)
    stale = last_copy(known)
    return FetchFailure(
        reason=f"{reason}, through the proxy {result.proxy}" if result.proxy else str(reason),
        attempts=attempts,
        since=now if previous is None else previous.since,
        asked=now,
        retry=now + max(backoff, min(asked or 0.0, policy.defer_max_secs)),
        stale=None if stale is None or why_not_obeyed(stale, policy) else stale,
        is_defect=isinstance(result, NoAnswer) and result.is_defect,
        no_such_host=isinstance(result, NoAnswer) and result.no_such_host,
    )


def _received(
    result: Answer | NoAnswer, known: CacheEntry | None, *, now: float, policy: Policy
) -> CachedRobots | str:
    """Return the new or revalidated copy, or the reason of a temporary failure."""
    if isinstance(result, NoAnswer):
        return printable(result.reason)
    if why := why_no_answer(result):
        return why
    copy, stated = last_copy(known), status_of_http(result.status)
    if result.status == 304:
        # 3.4: "they must periodically verify the cached copy is fresh before using
        # its contents"
        if copy is None or copy.url != result.url or not conditional_headers(copy):
            return "HTTP 304 though nothing was asked"
    elif stated is SiteStatus.UNAVAILABLE:
        return f"HTTP {result.status}"
    else:
        body, cut = (result.body, result.cut_bytes) if stated is SiteStatus.OBEYED else (b"", None)
        digest = result.digest or digest_of(result.body)
        copy = CachedRobots(
            result.url, result.status, body, None, None, now, now, cut, digest=digest
        )
    # Only validators of a file are kept. With the validators of an error page, a server could
    # answer 304 after a file has replaced the page, and the file would never be read.
    validators = result.headers if status_of_http(copy.status) is SiteStatus.OBEYED else {}
    life_secs = stated_life(result.headers, now=now)
    return replace(
        copy,
        etag=_validator(validators, "etag") or copy.etag,
        last_modified=_validator(validators, "last-modified") or copy.last_modified,
        fetched=now,
        expires=now + _life_secs(life_secs, copy.status, policy),
        life_stated=life_secs is not None,
    )


def _life_secs(stated: float | None, status: int, policy: Policy) -> float:
    """Return the life of a copy with *status*. *stated* is the result of ``stated_life``.

    A stated life is kept within the bounds of the policy. The lower bound does not apply to the
    default life of the policy.
    """
    # 3.4: "If no cache-control directives are present robots should default to
    # an expiry of 7 days."
    if stated is not None:
        return min(max(stated, policy.expiry_min_secs), policy.expiry_max_secs)
    is_restricted = status_of_http(status) is SiteStatus.RESTRICTED
    secs = policy.restricted_expiry_secs if is_restricted else policy.expiry_secs
    return min(secs, policy.expiry_max_secs)


def _validator(headers: Mapping[str, str], name: str) -> str | None:
    # Section 6: a validator becomes a request header, so it must be short and printable.
    value = headers.get(name, "").strip()
    sound = value.isprintable() and 0 < len(value) <= _VALIDATOR_CHARS
    return value if sound else None


def last_copy(known: CacheEntry | None) -> CachedRobots | None:
    """Return the last good copy in *known*, or None."""
    return known.stale if isinstance(known, FetchFailure) else known


def _series(
    known: CacheEntry | None, *, began: float, now: float, policy: Policy
) -> FetchFailure | None:
    """Return the previous failure if the new failure continues its series, or None.

    A series ends if no attempt begins for a long time after a failure. *began* is the time before
    the attempt waited for a socket, so a slow attempt does not end a series.
    """
    if not isinstance(known, FetchFailure) or not has_been(known.asked, now):
        return None
    is_late = began - known.asked > max(2 * policy.defer_max_secs, _LAG_SECS)
    return None if is_late else known


def longest_life_secs(copy: CachedRobots, policy: Policy) -> float:
    """Return the longest life that *policy* allows for a copy, in seconds."""
    return _life_secs(math.inf if copy.life_stated else None, copy.status, policy)


def longest_deferral_secs(policy: Policy) -> float:
    """Return the longest time between a failure and the next attempt, in seconds."""
    return policy.defer_max_secs * (1 + _JITTER)


def has_been(then: float, now: float) -> bool:
    """Return whether *then* is past, or a minute ahead at most, because clocks differ."""
    return then <= now + _SKEW_SECS
