"""The contract of a storage, run over every implementation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from harness.storages import IMPLEMENTATIONS, place_of
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.access import Copy, Failure, Known, Policy
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.storage import Storage, StorageError, is_news, judged
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.redis import RedisStorage
from scrapy_koster.storage.sqlite import SQLiteStorage

DAY_SECS = 86400.0


@pytest.fixture(params=IMPLEMENTATIONS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    opened = place_of(request.param, tmp_path).open()
    yield opened
    opened.close()


A = Site("http", "a.example", 80)
B = Site("http", "b.example", 80)

COPY = Copy(
    url="http://www.a.example/robots.txt",
    status=200,
    body=b"User-agent: *\nDisallow: /\n",
    etag='W/"1"',
    last_modified="Tue, 15 Nov 1994 12:45:26 GMT",
    fetched=1000.25,
    expires=605800.25,
)
FAILURE = Failure(
    reason="503 Service Unavailable",
    attempts=3,
    since=2000.0,
    asked=2030.5,
    retry=2070.75,
    stale=None,
)

KNOWN = {
    "copy": COPY,
    "copy without validators": replace(COPY, etag=None, last_modified=None),
    "copy with one validator": replace(COPY, etag=None),
    "empty validator": replace(COPY, etag=""),
    "404 with an empty body": replace(COPY, status=404, body=b""),
    "512 kB": replace(COPY, body=b"Disallow: /1234\n" * 32000),
    "NULs": replace(COPY, body=b"\0" * 10),
    "every octet": replace(COPY, body=bytes(range(256))),
    "text that reads as a number": replace(COPY, etag="12", last_modified="1e3"),
    "text that is not ASCII": replace(COPY, etag='"\xe9\u20ac"'),
    "whole seconds": replace(COPY, fetched=1.0, expires=2.0),
    "before the epoch": replace(COPY, fetched=-1.5, expires=-0.5),
    "cut": replace(COPY, cut_bytes=512_000),
    "life stated": replace(COPY, life_stated=True),
    "failure": FAILURE,
    "failure with a reason of two lines": replace(FAILURE, reason="a\nb\0c"),
    "failure without a reason": replace(FAILURE, reason=""),
    "failure with a stale copy": replace(FAILURE, stale=COPY),
    "failure with a stale 404": replace(
        FAILURE, stale=replace(COPY, status=404, body=b"", etag=None)
    ),
}


def test_unknown_is_none(storage: Storage) -> None:
    assert storage.get(A) is None


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN)
def test_get_returns_what_was_put(storage: Storage, known: Known) -> None:
    storage.put(A, known)
    assert storage.get(A) == known


LATER = [
    pytest.param(COPY, replace(COPY, body=b"", fetched=1001.0), id="copy, copy"),
    pytest.param(COPY, replace(FAILURE, stale=COPY), id="copy, failure"),
    pytest.param(FAILURE, replace(COPY, fetched=2031.0), id="failure, copy"),
    pytest.param(FAILURE, replace(FAILURE, attempts=4, asked=2071.0), id="failure, failure"),
]


@pytest.mark.parametrize(("older", "newer"), LATER)
def test_later_replaces_older(storage: Storage, older: Known, newer: Known) -> None:
    storage.put(A, older)
    storage.put(A, newer)
    assert storage.get(A) == newer


@pytest.mark.parametrize(("older", "newer"), LATER)
def test_older_does_not_replace_later(storage: Storage, older: Known, newer: Known) -> None:
    storage.put(A, newer)
    storage.put(A, older)
    assert storage.get(A) == newer


def test_of_one_time_the_last_put_is_kept(storage: Storage) -> None:
    storage.put(A, COPY)
    storage.put(A, replace(COPY, status=404))
    assert storage.get(A) == replace(COPY, status=404)


@pytest.mark.parametrize(
    ("ahead_secs", "kept"),
    [(DAY_SECS, "stored"), (DAY_SECS + 1, "put"), (1e300, "put")],
)
def test_a_time_of_a_wrong_clock_is_replaced(
    storage: Storage, ahead_secs: float, kept: str
) -> None:
    stored = replace(COPY, fetched=1000.0 + ahead_secs)
    put = replace(COPY, fetched=1000.0)
    storage.put(A, stored)
    storage.put(A, put)
    assert storage.get(A) == {"stored": stored, "put": put}[kept]


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example",
        "https://a.example",
        "http://a.example:443",
        "https://a.example:80",
        "http://a.example:8080",
        "http://[::1]",
        "https://[2001:db8::1]:8443",
        "http://xn--bcher-kva.example",
        "http://b\xfccher.example",
        "http://a.example';--",
    ],
)
def test_each_scheme_host_and_port_is_a_site(storage: Storage, url: str) -> None:
    site = site_of(url)
    assert site is not None
    others = [Site("http", "a.example", port) for port in (1, 2)]
    for other in others:
        storage.put(other, replace(COPY, url=other.robots_url))
    storage.put(site, replace(COPY, url=site.robots_url))
    expected = {each: replace(COPY, url=each.robots_url) for each in [site, *others]}
    assert dict(storage.sites()) == expected
    assert {each: storage.get(each) for each in expected} == expected


def test_sites_of_an_empty_storage(storage: Storage) -> None:
    assert list(storage.sites()) == []


def test_sites(storage: Storage) -> None:
    storage.put(A, COPY)
    storage.put(B, FAILURE)
    assert dict(storage.sites()) == {A: COPY, B: FAILURE}


def test_sites_may_be_forgotten_while_they_are_iterated(storage: Storage) -> None:
    storage.put(A, COPY)
    storage.put(B, FAILURE)
    for site, _ in storage.sites():
        storage.forget(site)
    assert storage.get(A) is None
    assert storage.get(B) is None


def test_forget(storage: Storage) -> None:
    storage.put(A, COPY)
    storage.put(B, COPY)
    assert storage.forget(A)
    assert not storage.forget(A)
    assert dict(storage.sites()) == {B: COPY}


def test_an_older_copy_may_be_put_after_forget(storage: Storage) -> None:
    storage.put(A, FAILURE)
    storage.forget(A)
    storage.put(A, COPY)
    assert storage.get(A) == COPY


def test_close_twice(storage: Storage) -> None:
    storage.close()
    storage.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda storage: storage.get(A),
        lambda storage: storage.put(A, COPY),
        lambda storage: storage.forget(A),
        lambda storage: list(storage.sites()),
    ],
    ids=["get", "put", "forget", "sites"],
)
def test_use_after_close(storage: Storage, call: Callable[[Storage], object]) -> None:
    storage.close()
    with pytest.raises(StorageError):
        call(storage)


def test_eight_threads(storage: Storage) -> None:
    threads, rounds = 8, 20
    together = Barrier(threads, timeout=30)

    def use(thread: int) -> None:
        own = [Site("http", f"{thread}-{n}.example", 80) for n in range(rounds)]
        together.wait()
        for n, site in enumerate(own):
            storage.put(site, replace(COPY, url=site.robots_url))
            storage.put(A, replace(COPY, fetched=1000.0 + n))
            assert storage.get(site) == replace(COPY, url=site.robots_url)
            assert storage.get(A) is not None
        assert storage.forget(own[0])
        assert len(dict(storage.sites())) >= rounds - 1

    with ThreadPoolExecutor(threads) as pool:
        for result in [pool.submit(use, thread) for thread in range(threads)]:
            result.result(timeout=60)
    assert len(dict(storage.sites())) == threads * (rounds - 1) + 1
    assert storage.get(A) == replace(COPY, fetched=1000.0 + rounds - 1)


times = st.floats(allow_nan=False, allow_infinity=False)
controls = [chr(number) for number in (*range(32), 127)]
lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=controls))
copies = st.builds(
    Copy,
    url=lines,
    status=st.integers(100, 999),
    body=st.binary(),
    etag=st.none() | lines,
    last_modified=st.none() | lines,
    fetched=times,
    expires=times,
)
failures = st.builds(
    Failure,
    reason=st.text(st.characters(exclude_categories=["Cs"])),
    attempts=st.integers(1, 2**31 - 1),
    since=times,
    asked=times,
    retry=times,
    stale=st.none() | copies,
)


def test_whatever_is_valid_comes_back(storage: Storage) -> None:
    @given(copies | failures)
    def check(known: Known) -> None:
        storage.forget(A)
        storage.put(A, known)
        assert storage.get(A) == known

    check()


def test_memory_gives_up_the_least_recently_used() -> None:
    storage = MemoryStorage(2)
    storage.put(A, COPY)
    storage.put(B, COPY)
    storage.get(A)
    c = Site("http", "c.example", 80)
    storage.put(c, COPY)
    assert dict(storage.sites()) == {A: COPY, c: COPY}


def test_memory_of_no_site_keeps_nothing() -> None:
    storage = MemoryStorage(0)
    storage.put(A, COPY)
    assert storage.get(A) is None


def test_what_the_caller_may_wait_for() -> None:
    assert not MemoryStorage.blocking
    assert SQLiteStorage.blocking
    assert RedisStorage.blocking


# What is read back, by the settings of today.

POLICY = Policy(expiry_secs=1000, restricted_expiry_secs=100, expiry_max_secs=5000)
BODY = b"User-agent: *\nDisallow: /a\nDisallow: /b\n"
WHOLE = replace(COPY, body=BODY, fetched=0.0, expires=9e9)
CUT = replace(WHOLE, cut_bytes=50)


@pytest.mark.parametrize(
    ("stored", "max_bytes", "body", "cut_bytes"),
    [
        pytest.param(WHOLE, 100, BODY, None, id="whole"),
        pytest.param(WHOLE, len(BODY), BODY, None, id="just whole"),
        pytest.param(WHOLE, 30, BODY[:27], 30, id="cut for the first time"),
        pytest.param(WHOLE, 5, b"", 5, id="nothing is left"),
        pytest.param(CUT, 50, BODY, 50, id="cut before, at the same limit"),
        pytest.param(CUT, 45, BODY, 50, id="cut before, and the rest is short enough"),
        pytest.param(CUT, 30, BODY[:27], 30, id="cut again"),
    ],
)
def test_a_file_is_cut_at_the_limit_of_today(
    stored: Copy, max_bytes: int, body: bytes, cut_bytes: int | None
) -> None:
    for known in (stored, replace(FAILURE, stale=stored)):
        found = judged(known, policy=POLICY, max_bytes=max_bytes)
        copy = found.stale if isinstance(found, Failure) else found
        assert copy is not None
        assert (copy.body, copy.cut_bytes) == (body, cut_bytes)
        assert copy.etag == COPY.etag


def test_a_file_that_was_cut_shorter_is_not_known() -> None:
    assert judged(CUT, policy=POLICY, max_bytes=51) is None
    failure = replace(FAILURE, stale=CUT)
    assert judged(failure, policy=POLICY, max_bytes=51) == replace(FAILURE, stale=None)


@pytest.mark.parametrize(
    ("stored", "life_secs"),
    [
        pytest.param(replace(WHOLE, life_stated=True), 5000, id="stated"),
        pytest.param(replace(WHOLE, life_stated=True, expires=9.0), 9, id="stated, shorter"),
        pytest.param(WHOLE, 1000, id="by default"),
        pytest.param(replace(WHOLE, status=403), 100, id="restricted, by default"),
        pytest.param(replace(WHOLE, status=403, life_stated=True), 5000, id="restricted, stated"),
    ],
)
def test_a_copy_lives_no_longer_than_today(stored: Copy, life_secs: float) -> None:
    for fetched in (0.0, 7.0):
        moved = replace(stored, fetched=fetched, expires=stored.expires + fetched)
        found = judged(moved, policy=POLICY, max_bytes=100)
        assert isinstance(found, Copy)
        assert found.expires == fetched + life_secs


def test_a_failure_is_deferred_no_longer_than_today() -> None:
    policy = Policy(defer_max_secs=8)
    far = replace(FAILURE, retry=FAILURE.asked + 700)
    assert judged(far, policy=policy, max_bytes=100) == replace(far, retry=FAILURE.asked + 10)
    near = replace(FAILURE, retry=FAILURE.asked + 9)
    assert judged(near, policy=policy, max_bytes=100) == near


# What a claim says is taken where it is newer.


@pytest.mark.parametrize(
    ("found", "known", "taken"),
    [
        pytest.param(COPY, None, True, id="nothing was known"),
        pytest.param(COPY, COPY, False, id="the same"),
        pytest.param(COPY, replace(COPY, fetched=1000.0), True, id="newer"),
        pytest.param(COPY, replace(COPY, fetched=1001.0), False, id="older"),
        pytest.param(COPY, replace(FAILURE, asked=1001.0), False, id="older than a failure"),
        pytest.param(replace(COPY, fetched=1e9), None, False, id="of a clock that runs ahead"),
        pytest.param(replace(COPY, fetched=1e9), COPY, False, id="newer, of such a clock"),
        pytest.param(COPY, replace(COPY, fetched=1e9), True, id="in place of such a one"),
    ],
)
def test_what_is_news(found: Known, known: Known | None, *, taken: bool) -> None:
    assert is_news(found, known, now=3000.0) is taken
