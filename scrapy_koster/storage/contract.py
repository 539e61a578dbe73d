"""The contract of a storage, as checks that you can run on your storage with any test runner.

    CHECKS = contract.checks(MyStorage)

    @pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
    def test_my_storage(check, tmp_path):
        check(lambda robot: MyStorage(tmp_path / "robots", robot))

A check opens two storages of the robot "a" and one of the robot "b" at the same empty place, as
three processes do. Then the check uses and closes the storages. If a promise is broken, the check
raises AssertionError. If processes cannot share your storage, for example a storage in memory, your
function has to return the same object for every call with the same robot.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from threading import Barrier
from typing import Any, TypeAlias

from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.storage.latest import LATE_SECS
from scrapy_koster.storage.port import Claimed, Claiming, Pacing, Pruning, Storage, StorageError

__all__ = ["Check", "checks"]

A = Site("http", "a.example", 80)
B = Site("http", "b.example", 80)
COPY = CachedRobots(
    url="http://www.a.example/robots.txt",
    status=200,
    body=b"User-agent: *\nDisallow: /\n",
    etag='W/"1"',
    last_modified="Tue, 15 Nov 1994 12:45:26 GMT",
    fetched=1000.25,
    expires=605800.25,
)
NEWER = replace(COPY, body=b"", fetched=1001.25)
FAILURE = FetchFailure("503 Service Unavailable", 3, 2000.0, 2030.5, 2070.75, None)
KNOWN: Mapping[str, CacheEntry] = {
    "copy": COPY,
    "404 with an empty body": replace(COPY, status=404, body=b"", etag="", last_modified=None),
    "512 kB": replace(COPY, body=b"Disallow: /1234\n" * 32000),
    "every byte": replace(COPY, body=bytes(range(256))),
    "text that reads as a number": replace(COPY, etag="12", last_modified="1e3"),
    "text that is not ASCII": replace(COPY, etag='"\xe9\u20ac"'),
    "before the epoch": replace(COPY, fetched=-1.5, expires=-0.5),
    "cut, with a stated life": replace(COPY, cut_bytes=512_000, life_stated=True),
    "archived, and decoded": replace(COPY, record_id="<urn:x>", digest=digest_of(b"received")),
    "failure": replace(FAILURE, reason="a\nb\0c"),
    "failure with a stale copy": replace(FAILURE, reason="", stale=COPY),
}
LATER: tuple[tuple[CacheEntry, CacheEntry], ...] = (
    (COPY, NEWER),
    (COPY, replace(COPY, fetched=COPY.fetched + LATE_SECS)),
    (COPY, replace(FAILURE, stale=COPY)),
    (FAILURE, replace(COPY, fetched=2031.0)),
)
URLS = ("http://a.example:443", "https://[2001:db8::1]:8443", "http://b\xfccher.example';--")
THREADS, ROUNDS, SECS, SLOW_SECS, BOUND_SECS = 8, 25, 30.0, 5.0, 60.0


Check: TypeAlias = Callable[[Callable[[str], Storage]], None]
"""A promise of a storage. Call the check with a function that opens the storage of a robot."""


def checks(storage: type[object]) -> dict[str, Check]:
    """Return the checks for the class *storage*, by name.

    A class with the methods of ``Claiming``, ``Pacing`` or ``Pruning`` has more checks. Checks with
    threads are for a class that is ``blocking`` or has the methods of ``Claiming``.
    """
    found = list(_OF_ALL)
    if issubclass(storage, Claiming):
        found += _OF_CLAIMS
    if issubclass(storage, Pacing):
        found += _OF_LOCKS
    if issubclass(storage, Pruning):
        found.append(prune_deletes_old_values)
    if issubclass(storage, Claiming) or getattr(storage, "blocking", True):
        found.append(eight_threads_lose_nothing)
        found += [one_of_eight_visits_may_begin] if issubclass(storage, Pacing) else []
    return {promise.__name__: partial(_check, promise) for promise in found}


def _check(promise: Callable[..., None], opens: Callable[[str], Storage]) -> None:
    """Call *promise* with two storages of the robot "a" and one of the robot "b"."""
    with ExitStack() as opened:
        promise(*[opened.enter_context(closing(opens(robot))) for robot in ("a", "a", "b")])


def declares_what_a_crawl_needs(one: Any, two: Any, other: Any) -> None:
    assert isinstance(one.blocking, bool)
    for setting in getattr(one, "SETTINGS", {}).values():
        setting.read(setting.default)
    assert hasattr(one, "claim") == hasattr(one, "release")


def get_returns_the_value_that_was_put(one: Any, two: Any, other: Any) -> None:
    for port, (name, known) in enumerate(KNOWN.items(), 1):
        site = Site("http", "a.example", port)
        assert one.get(site) is None
        one.put(site, known)
        assert one.get(site) == two.get(site) == known, name


def the_later_value_is_kept(one: Any, two: Any, other: Any) -> None:
    for port, (older, newer) in enumerate(LATER, 1):
        site = Site("http", "a.example", port)
        one.put(site, older)
        two.put(site, newer)
        assert one.get(site) == newer
        two.put(site, older)
        assert one.get(site) == newer


def a_time_of_a_wrong_clock_is_replaced(one: Any, two: Any, other: Any) -> None:
    one.put(A, replace(COPY, fetched=NEWER.fetched + LATE_SECS))
    two.put(A, COPY)
    assert one.get(A) == COPY


def scheme_host_and_port_are_the_key(one: Any, two: Any, other: Any) -> None:
    sites = [*map(site_of, URLS), Site("http", "a.example", 1), Site("http", "a.example", 2)]
    known = {site: replace(COPY, url=site.robots_url) for site in sites if site}
    for site, copy in known.items():
        one.put(site, copy)
    assert dict(two.sites()) == known


def each_robot_has_its_own_values(one: Any, _two: Any, other: Any) -> None:
    one.put(A, NEWER)
    other.put(A, COPY)
    other.put(B, FAILURE)
    assert (one.get(A), one.get(B), other.get(A)) == (NEWER, None, COPY)
    assert dict(one.sites()) == {A: NEWER}
    assert "a" in one.robots()
    assert other.forget(A)
    assert one.get(A) == NEWER


def sites_can_be_forgotten_during_iteration(one: Any, two: Any, other: Any) -> None:
    assert list(one.sites()) == []
    one.put(A, FAILURE)
    one.put(B, FAILURE)
    assert [two.forget(site) for site, _ in one.sites()] == [True, True]
    assert not one.forget(A)
    one.put(A, COPY)
    assert dict(two.sites()) == {A: COPY}


def a_call_after_close_fails(one: Any, two: Any, other: Any) -> None:
    one.close()
    one.close()
    for call in (lambda: one.get(A), lambda: one.put(A, COPY), lambda: list(one.sites())):
        try:
            call()
        except StorageError:
            continue
        raise AssertionError("no StorageError was raised")


def eight_threads_lose_nothing(one: Any, two: Any, other: Any) -> None:
    def put(storage: Any, thread: int, n: int) -> None:
        storage.put(Site("http", f"{thread}-{n}.example", 80), COPY)
        storage.put(A, replace(COPY, fetched=1000.0 + n))

    for n in range(ROUNDS):
        _in_eight_threads(one, two, put, n)
    assert len(dict(one.sites())) == THREADS * ROUNDS + 1
    assert one.get(A) == replace(COPY, fetched=1000.0 + ROUNDS - 1)


def one_of_eight_claims_succeeds(one: Any, two: Any, other: Any) -> None:
    def lease_left(storage: Any, thread: int, n: int) -> Any:
        return _claim(storage, str(thread), site=Site("http", f"{n}.example", 80)).lease_left

    for n in range(ROUNDS):
        assert _in_eight_threads(one, two, lease_left, n).count(0.0) == 1


def a_claim_is_of_one_site_and_robot(one: Any, two: Any, other: Any) -> None:
    assert not _claim(one, "x").lease_left
    assert not _claim(two, "y", site=B).lease_left
    assert not _claim(other, "y").lease_left
    assert SECS - SLOW_SECS < _claim(two, "y").lease_left <= SECS
    assert list(one.sites()) == []


def a_claim_ends(one: Any, two: Any, other: Any) -> None:
    _claim(one, "x", secs=0.3)
    began = time.monotonic()
    while held := _claim(two, "y").lease_left:
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(held)
    two.release(A, "y")
    two.release(A, "y")
    assert not _claim(one, "x", secs=1).lease_left
    assert not _claim(one, "x").lease_left  # the claim is prolonged
    two.put(A, COPY, "y")
    two.put(A, NEWER)
    two.release(A, "")
    claimed = _claim(two, "y")
    assert claimed.lease_left > 1
    assert claimed.known == NEWER
    one.put(A, COPY, "x")  # the older copy is not kept, and the claim ends
    assert _claim(two, "y") == Claimed(NEWER, 0.0)


def a_known_site_is_not_claimed_unless_it_is_unknown(one: Any, two: Any, other: Any) -> None:
    assert _claim(one, "x", unless_known=True) == Claimed(None, 0.0)
    assert _claim(two, "y", unless_known=True).lease_left > 0
    one.put(A, COPY, "x")
    assert _claim(one, "x", unless_known=True) == Claimed(COPY, 0.0)
    assert not _claim(two, "y").lease_left


def a_host_is_locked_until_the_visit_ends(one: Any, two: Any, other: Any) -> None:
    assert _begin(one, "x") == 0.0
    assert SECS - SLOW_SECS < _begin(two, "y") <= SECS
    assert SECS - SLOW_SECS < _begin(other, "z") <= SECS, "robots share the lock"
    assert _begin(two, "y", host="b.example") == 0.0
    assert _begin(one, "x") == 0.0, "the lock is prolonged"
    _end(one, "x", 0.0)
    assert _begin(two, "y") == 0.0
    assert one.get(A) is None


def prune_deletes_old_values(one: Any, two: Any, other: Any) -> None:
    old = replace(COPY, fetched=COPY.fetched - 10.0)
    one.put(A, old)
    one.put(B, COPY)
    other.put(B, replace(FAILURE, asked=old.fetched))
    two.prune(now=COPY.fetched, secs=9.0)
    assert dict(one.sites()) == {B: COPY}
    assert dict(other.sites()) == {}
    two.prune(now=COPY.fetched, secs=9.0)


def a_host_rests_after_a_visit(one: Any, two: Any, other: Any) -> None:
    _begin(one, "x")
    began = time.monotonic()
    _end(one, "x", 0.3)
    assert 0 < _begin(one, "x") <= 0.3
    while left := _begin(two, "y"):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(left)
    assert time.monotonic() - began > 0.29


def a_visit_without_the_lock_prolongs_the_rest(one: Any, two: Any, other: Any) -> None:
    _end(one, "x", SECS / 2)
    _end(two, "y", SECS)
    _end(one, "x", 0.3)
    assert SECS - SLOW_SECS < _begin(one, "x") <= SECS


def the_lock_of_another_owner_stays(one: Any, two: Any, other: Any) -> None:
    """The lease of the first owner ends before its visit does: the process was suspended."""
    began = time.monotonic()
    _begin(one, "x", secs=0.2)
    while left := _begin(two, "y"):
        assert time.monotonic() - began < BOUND_SECS
        time.sleep(left)
    for secs in (0.0, 0.1, 2 * SECS):
        _end(one, "x", secs)
        assert SECS - SLOW_SECS < _begin(one, "x") <= SECS


def one_of_eight_visits_may_begin(one: Any, two: Any, other: Any) -> None:
    def left_secs(storage: Any, thread: int, n: int) -> Any:
        return _begin(storage, str(thread), host=f"{n}.example")

    for n in range(ROUNDS):
        assert _in_eight_threads(one, two, left_secs, n).count(0.0) == 1


def _claim(storage: Any, owner: str, *, secs: float = SECS, site: Site = A, **how: bool) -> Any:
    return storage.claim(site, owner, now=time.time(), secs=secs, **how)


def _begin(storage: Any, owner: str, *, host: str = A.host, secs: float = SECS) -> Any:
    return storage.begin_visit(host, owner, now=time.time(), secs=secs)


def _end(storage: Any, owner: str, secs: float) -> None:
    storage.end_visit(A.host, owner, now=time.time(), secs=secs)


def _in_eight_threads(one: Any, two: Any, call: Callable[[Any, int, int], Any], n: int) -> Any:
    """Return the results of *call* in eight threads that begin at the same time, in round *n*."""
    together = Barrier(THREADS, timeout=BOUND_SECS)

    def run(thread: int) -> Any:
        together.wait()
        return call((one, two)[thread % 2], thread, n)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


_OF_ALL = (
    declares_what_a_crawl_needs,
    get_returns_the_value_that_was_put,
    the_later_value_is_kept,
    a_time_of_a_wrong_clock_is_replaced,
    scheme_host_and_port_are_the_key,
    each_robot_has_its_own_values,
    sites_can_be_forgotten_during_iteration,
    a_call_after_close_fails,
)
_OF_LOCKS = [
    a_host_is_locked_until_the_visit_ends,
    a_host_rests_after_a_visit,
    a_visit_without_the_lock_prolongs_the_rest,
    the_lock_of_another_owner_stays,
]
_OF_CLAIMS = [
    one_of_eight_claims_succeeds,
    a_claim_is_of_one_site_and_robot,
    a_claim_ends,
    a_known_site_is_not_claimed_unless_it_is_unknown,
]
