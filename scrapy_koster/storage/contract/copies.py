"""What every storage promises: what is put is kept, and the later of two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from threading import Barrier
from typing import Any

from scrapy_koster.protocol.access import Known
from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.storage.contract.check import (
    COPY,
    FAILURE,
    NEWER,
    THREADS,
    A,
    B,
    Checks,
    fails,
    in_threads,
)
from scrapy_koster.storage.latest import LATE_SECS
from scrapy_koster.storage.port import Storage

CHECKS = Checks()

KNOWN: Mapping[str, Known] = {
    "copy": COPY,
    "copy without validators": replace(COPY, etag=None, last_modified=None),
    "copy with one validator": replace(COPY, etag=None),
    "empty validator": replace(COPY, etag=""),
    "404 with an empty body": replace(COPY, status=404, body=b""),
    "512 kB": replace(COPY, body=b"Disallow: /1234\n" * 32000),
    "NULs": replace(COPY, body=b"\0" * 10),
    "every byte": replace(COPY, body=bytes(range(256))),
    "text that reads as a number": replace(COPY, etag="12", last_modified="1e3"),
    "text that is not ASCII": replace(COPY, etag='"\xe9\u20ac"'),
    "whole seconds": replace(COPY, fetched=1.0, expires=2.0),
    "before the epoch": replace(COPY, fetched=-1.5, expires=-0.5),
    "cut": replace(COPY, cut_bytes=512_000),
    "life stated": replace(COPY, life_stated=True),
    "body was decoded": replace(COPY, digest=digest_of(b"as it was received")),
    "in an archive": replace(COPY, record_id="<urn:uuid:9a1c2a3e-7d7d-4e0e-9c55-0d6c5f1f9a01>"),
    "failure": FAILURE,
    "failure with a reason of two lines": replace(FAILURE, reason="a\nb\0c"),
    "failure without a reason": replace(FAILURE, reason=""),
    "failure with a stale copy": replace(FAILURE, stale=COPY),
    "failure with a stale 404": replace(
        FAILURE, stale=replace(COPY, status=404, body=b"", etag=None)
    ),
}
LATER: Mapping[str, tuple[Known, Known]] = {
    "copy, copy": (COPY, NEWER),
    "copy, failure": (COPY, replace(FAILURE, stale=COPY)),
    "failure, copy": (FAILURE, replace(COPY, fetched=2031.0)),
    "failure, failure": (FAILURE, replace(FAILURE, attempts=4, asked=2071.0)),
}
LONG_NAME = ".".join(["\xfc" * 60] * 4)
URLS = (
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
    f"http://{LONG_NAME}.example",
)


@CHECKS.add
def its_class_says_what_a_crawl_needs(one: Any, two: Any) -> None:
    assert isinstance(one.blocking, bool)
    for setting in getattr(one, "SETTINGS", {}).values():
        setting.read(setting.default)
    # One without the other would be taken for a storage without claims.
    assert hasattr(one, "claim") == hasattr(one, "release")


@CHECKS.add
def unknown_is_none(one: Storage, two: Storage) -> None:
    assert one.get(A) is None


@CHECKS.each(KNOWN)
def get_returns_what_was_put(one: Storage, two: Storage, known: Known) -> None:
    one.put(A, known)
    assert one.get(A) == known
    assert two.get(A) == known


@CHECKS.each(LATER)
def later_replaces_older(one: Storage, two: Storage, case: tuple[Known, Known]) -> None:
    older, newer = case
    one.put(A, older)
    two.put(A, newer)
    assert one.get(A) == newer


@CHECKS.each(LATER)
def older_does_not_replace_later(one: Storage, two: Storage, case: tuple[Known, Known]) -> None:
    older, newer = case
    one.put(A, newer)
    two.put(A, older)
    assert one.get(A) == newer


@CHECKS.add
def of_one_time_the_last_put_is_kept(one: Storage, two: Storage) -> None:
    one.put(A, COPY)
    two.put(A, replace(COPY, status=404))
    assert one.get(A) == replace(COPY, status=404)


@CHECKS.each({f"{secs:g} s": secs for secs in (LATE_SECS, LATE_SECS + 1, 1e300)})
def a_time_of_a_wrong_clock_is_replaced(one: Storage, two: Storage, ahead_secs: float) -> None:
    stored = replace(COPY, fetched=1000.0 + ahead_secs)
    put = replace(COPY, fetched=1000.0)
    one.put(A, stored)
    two.put(A, put)
    assert one.get(A) == (stored if ahead_secs <= LATE_SECS else put)


@CHECKS.each({url[:30]: url for url in URLS})
def each_scheme_host_and_port_is_a_site(one: Storage, two: Storage, url: str) -> None:
    site = site_of(url)
    assert site is not None
    sites = [site, *(Site("http", "a.example", port) for port in (1, 2))]
    for each in sites:
        one.put(each, replace(COPY, url=each.robots_url))
    expected = {each: replace(COPY, url=each.robots_url) for each in sites}
    assert dict(two.sites()) == expected
    assert {each: two.get(each) for each in sites} == expected


@CHECKS.add
def sites_of_an_empty_storage(one: Storage, two: Storage) -> None:
    assert list(one.sites()) == []


@CHECKS.add
def sites_are_all_that_was_put(one: Storage, two: Storage) -> None:
    one.put(A, COPY)
    two.put(B, FAILURE)
    assert dict(one.sites()) == {A: COPY, B: FAILURE}


@CHECKS.add
def sites_may_be_forgotten_while_they_are_iterated(one: Storage, two: Storage) -> None:
    one.put(A, COPY)
    one.put(B, FAILURE)
    for site, _ in one.sites():
        one.forget(site)
    assert one.get(A) is None
    assert one.get(B) is None


@CHECKS.add
def forget_is_of_one_site(one: Storage, two: Storage) -> None:
    one.put(A, COPY)
    one.put(B, COPY)
    assert one.forget(A)
    assert not two.forget(A)
    assert dict(two.sites()) == {B: COPY}


@CHECKS.add
def an_older_copy_may_be_put_after_forget(one: Storage, two: Storage) -> None:
    one.put(A, FAILURE)
    one.forget(A)
    one.put(A, COPY)
    assert two.get(A) == COPY


@CHECKS.add
def close_twice(one: Storage, two: Storage) -> None:
    one.close()
    one.close()


@CHECKS.add
def a_call_after_close_fails(one: Storage, two: Storage) -> None:
    one.close()
    fails(lambda: one.get(A))
    fails(lambda: one.put(A, COPY))
    fails(lambda: one.forget(A))
    fails(lambda: list(one.sites()))


@CHECKS.add
def eight_threads_at_once(one: Storage, two: Storage) -> None:
    rounds = 20

    def use(thread: int, together: Barrier) -> None:
        own = [Site("http", f"{thread}-{n}.example", 80) for n in range(rounds)]
        together.wait()
        for n, site in enumerate(own):
            one.put(site, replace(COPY, url=site.robots_url))
            one.put(A, replace(COPY, fetched=1000.0 + n))
            assert one.get(site) == replace(COPY, url=site.robots_url)
            assert one.get(A) is not None
        assert one.forget(own[0])
        assert len(dict(one.sites())) >= rounds - 1

    in_threads(use)
    assert len(dict(one.sites())) == THREADS * (rounds - 1) + 1
    assert one.get(A) == replace(COPY, fetched=1000.0 + rounds - 1)
