"""3.1, 3.4: the next step of a request, by the copy or failure of the site."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from scrapy_koster.protocol.access import (
    CachedRobots,
    CacheEntry,
    FetchFailure,
    has_been,
    last_copy,
    status_of_copy,
    why_not_obeyed,
)
from scrapy_koster.protocol.policy import Policy, Unavailable
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site_status import SiteStatus

if TYPE_CHECKING:  # no dependency of ours
    from typing_extensions import TypeIs

# The reason of a failure is cut to this number of characters. The reason for giving up follows.
_REASON_CHARS = 400


@dataclass(frozen=True, slots=True)
class Obey:
    """Let the copy decide on requests."""

    copy: CachedRobots
    until: float
    """When to take the next step, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Fetch /robots.txt. If there is a stale copy, revalidate the copy (3.4)."""

    stale: CachedRobots | None


@dataclass(frozen=True)
class _Failed:
    """A step without a copy to obey."""

    failure: FetchFailure
    until: float
    """When to take the next step, in seconds since the epoch."""


class Defer(_Failed):
    """Defer visits to the site (3.1)."""


@dataclass(frozen=True)
class Pass(_Failed):
    """Allow requests without a robots.txt: by KOSTER_UNAVAILABLE = "allow", or by an override."""

    by_override: bool = False
    """Whether only an override allows them. Without it, the site is closed."""


class Refuse(_Failed):
    """Refuse requests, because no robots.txt was retrieved.

    For example, deferring is disabled, its time limit is over, or the host does not exist.
    """


Step: TypeAlias = Obey | Ask | Defer | Pass | Refuse
"""The action for a request."""

Settled: TypeAlias = Obey | Pass | Refuse
"""The steps that allow or refuse a request at once."""


def status_of_step(step: Settled, policy: Policy) -> SiteStatus:
    """Return the status of a site with this *step*."""
    if isinstance(step, Obey):
        return status_of_copy(step.copy, policy)
    is_open = isinstance(step, Pass) and (policy.is_opened or not step.by_override)
    return SiteStatus.LET_THROUGH if is_open else SiteStatus.UNAVAILABLE


def waits(step: Step) -> "TypeIs[Ask | Defer]":
    """Return whether a request with this *step* has to wait for a fetch or for a retry."""
    return isinstance(step, (Ask, Defer))


def next_step(known: CacheEntry | None, *, now: float, policy: Policy) -> Step:
    """Return the next step of a request. *known* is the copy or failure of its site, or None."""
    if isinstance(known, CachedRobots):
        obeyed = _is_fresh(known, now) and not why_not_obeyed(known, policy)
        return Obey(known, known.expires) if obeyed else Ask(known)
    if known is not None and has_been(known.asked, now):
        return _step_without(known, now=now, policy=policy)
    return Ask(last_copy(known))


def copy_in_force(known: CacheEntry | None, *, now: float, policy: Policy) -> CachedRobots | None:
    """Return the last copy, by which a decided request is decided again, even if expired.

    Return None if there is no copy, or if the site has failed and KOSTER_UNAVAILABLE = "allow"
    opens it: KOSTER_STALE_IF_ERROR_SECS after the copy has expired.
    """
    copy = last_copy(known)
    if copy is None or not isinstance(known, FetchFailure) or known.is_defect:
        return copy
    is_open = policy.unavailable is Unavailable.ALLOW
    return None if is_open and now >= copy.expires + policy.stale_if_error_secs else copy


def _is_fresh(copy: CachedRobots, now: float, longer_secs: float = 0.0) -> bool:
    return has_been(copy.fetched, now) and now < copy.expires + longer_secs


def _step_without(failure: FetchFailure, *, now: float, policy: Policy) -> Step:
    between = step_between(failure, now=now, policy=policy)
    if policy.defers and not isinstance(between, Obey):
        return _deferred(failure, now=now, policy=policy)
    return between if now < between.until else Ask(last_copy(failure))


def step_between(failure: FetchFailure, *, now: float, policy: Policy) -> Settled:
    """Return the step of a request that does not wait for the next attempt.

    A stale copy is obeyed for KOSTER_STALE_IF_ERROR_SECS. Without one, KOSTER_UNAVAILABLE decides.
    """
    stale, longer_secs = failure.stale, policy.stale_if_error_secs
    is_usable = stale is not None and _is_fresh(stale, now, longer_secs)
    if stale is not None and is_usable and not why_not_obeyed(stale, policy):
        return Obey(stale, min(failure.retry, stale.expires + longer_secs))
    passes = policy.unavailable is Unavailable.ALLOW and not failure.is_defect
    if passes:
        return Pass(failure, failure.retry, policy.is_opened)
    return Refuse(failure, failure.retry)


def given_up_at(known: CacheEntry | None, *, policy: Policy) -> float:
    """Return the time when requests to a failing site are given up, in seconds since the epoch.

    Infinite if the site has not failed, or if KOSTER_UNAVAILABLE is not "defer".
    """
    if isinstance(known, FetchFailure) and policy.defers:
        return known.asked if known.no_such_host else known.since + policy.defer_limit_secs
    return math.inf


def given_up(failure: FetchFailure, why: str, *, now: float, policy: Policy) -> Refuse:
    """Return the step that gives the site up for the reason *why*: as if its limit had passed.

    So requests are refused until an attempt succeeds.
    """
    before = failure.reason.removesuffix(f"; {why}")  # given up before
    reason = f"{printable(before, _REASON_CHARS)}; {why}"
    since = min(failure.since, failure.asked - policy.defer_limit_secs)
    return Refuse(replace(failure, reason=reason, since=since), now)


def closed(now: float) -> Refuse:
    """Return the step that refuses a waiting request when the crawl closes."""
    return Refuse(FetchFailure("the crawl is closing", 0, now, now, now, None), now)


def _deferred(failure: FetchFailure, *, now: float, policy: Policy) -> Step:
    limit = given_up_at(failure, policy=policy)
    again = max(failure.retry, failure.asked + policy.defer_max_secs)
    if now < limit and now < failure.retry:
        return Defer(failure, min(failure.retry, limit))
    # An attempt that was due before the limit is still made, for example after the machine slept.
    if now < limit or now >= again or failure.retry < limit:
        return Ask(failure.stale)
    return Refuse(failure, again)
