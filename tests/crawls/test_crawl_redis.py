"""Crawls that share a Redis with which something is wrong: each a row of docs/fleet.md."""

from __future__ import annotations

import logging
import signal
import time
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from secrets import token_hex
from typing import Any

import pytest
from harness.crawling import Crawl, Running
from harness.redis_server import answering, common_server, redis_server
from harness.replies import Reply
from harness.server import Server, Site

from scrapy_koster.protocol.access import Copy
from scrapy_koster.storage.encoding import encoded
from scrapy_koster.storage.redis import RedisStorage

RULES = "User-agent: *\nDisallow: /private\n"
CRAWLS = 3
SITES = 10
PASSWORD = "s3cret"
OPEN = b"User-agent: *\nDisallow:\n"


@pytest.fixture
def prefix() -> str:
    return f"test-{token_hex(6)}"


def settings(url: str, prefix: str) -> dict[str, Any]:
    return {
        "KOSTER_STORAGE": RedisStorage,
        "KOSTER_REDIS_URL": url,
        "KOSTER_REDIS_PREFIX": prefix,
    }


def sites(server: Server, reply: Any = RULES) -> list[Site]:
    made = [server.site() for _ in range(SITES)]
    for site in made:
        site.robots = reply
    return made


def start(crawl: Crawl, made: Sequence[Site], given: dict[str, Any]) -> list[Running]:
    """Crawls of two pages of each site, and of one that is forbidden."""
    urls = [site.url(path) for site in made for path in ("/a", "/private", "/b")]
    return [crawl.start(urls=urls, settings=given) for _ in range(CRAWLS)]


async def stand(
    running: Sequence[Running], made: Sequence[Site], warnings: int, *, fewer: bool = False
) -> None:
    """Fail unless all is fetched that is allowed, nothing else, and no more is said than that."""
    results = [await each.result() for each in running]
    wanted = sorted(site.url(path) for site in made for path in ("/a", "/b"))
    for result in results:
        assert sorted(result.fetched) == wanted
        assert len(result.refused) == SITES
    for site in made:
        assert not site.asked("/private")
        assert 1 <= site.asked("/robots.txt") <= CRAWLS
    # A log that is kept has the lines of crawls beside it, too.
    said = {id(record): record for result in results for record in result.log}
    ours = [r for r in said.values() if r.name.startswith("scrapy_koster")]
    loud = [r.getMessage() for r in ours if r.levelno >= logging.WARNING]
    assert (len(loud) <= warnings) if fewer else (len(loud) == warnings), loud
    assert all(line.startswith("The storage of robots.txt failed.") for line in loud)
    assert not [r for r in said.values() if PASSWORD in f"{r.getMessage()} {r.exc_text}"]


def asked(made: Sequence[Site]) -> int:
    return sum(site.asked("/robots.txt") for site in made)


async def test_nothing_is_wrong(crawl: Crawl, server: Server, prefix: str) -> None:
    made = sites(server)
    running = start(crawl, made, settings(common_server().url(), prefix))
    await stand(running, made, warnings=0)
    assert asked(made) == SITES


# What is in it


def fill(prefix: str, made: Sequence[Site], value: Callable[[Site], bytes]) -> None:
    with common_server().client() as client:
        for site in made:
            client.set(f"{prefix}:2:known:{{{site.url('')} scrapy}}", value(site))


def opening(site: Site, fetched: float) -> bytes:
    """A copy that would allow everything, if it were believed."""
    copy = Copy(site.url("/robots.txt"), 200, OPEN, None, None, fetched, fetched + 1e6)
    return b"%r " % fetched + encoded(copy)


@cache
def bomb() -> bytes:
    return zlib.compress(bytes(300 * 2**20), level=1)


VALUES: dict[str, Callable[[Site], bytes]] = {
    "garbage": lambda site: b"\xff\x00garbage",
    "300 MB": lambda site: b"1.0 " + bomb(),
    "of a clock that runs ahead": lambda site: opening(site, time.time() + 10 * 86400),
    "cut": lambda site: opening(site, time.time() - 10)[:-3],
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
async def test_each_value_is_wrong(
    crawl: Crawl, server: Server, prefix: str, value: Callable[[Site], bytes]
) -> None:
    made = sites(server)
    fill(prefix, made, value)
    running = start(crawl, made, settings(common_server().url(), prefix))
    await stand(running, made, warnings=0)
    assert asked(made) == SITES


async def test_keys_of_another_type(crawl: Crawl, server: Server, prefix: str) -> None:
    made = sites(server)
    with common_server().client() as client:
        for site in made:
            for kind in ("known", "claim"):
                client.lpush(f"{prefix}:1:{kind}:{{{site.url('')}}}", "x")
    running = start(crawl, made, settings(common_server().url(), prefix))
    await stand(running, made, warnings=0)
    assert asked(made) == SITES


async def test_flushall(crawl: Crawl, server: Server) -> None:
    gate = server.gate()
    made = sites(server, Reply(200, RULES, gate=gate))
    with redis_server() as own, own.client() as client:
        running = start(crawl, made, settings(own.url(), "koster"))
        await crawl.until(lambda: asked(made) == SITES)
        client.flushall()
        client.script_flush()
        gate.open()
        await stand(running, made, warnings=0)


# The server


async def test_it_hangs_for_a_while(crawl: Crawl, server: Server) -> None:
    made = sites(server)
    with redis_server() as own:
        own.send(signal.SIGSTOP)
        try:
            running = start(crawl, made, settings(own.url(), "koster"))
            await stand(running, made, warnings=CRAWLS)
        finally:
            own.send(signal.SIGCONT)


async def test_it_is_away_from_the_start(crawl: Crawl, server: Server) -> None:
    made = sites(server)
    url = f"redis://koster:{PASSWORD}@127.0.0.1:{server.down().port}/0"
    await stand(start(crawl, made, settings(url, "koster")), made, warnings=CRAWLS)


async def test_it_is_killed_and_comes_back(crawl: Crawl, server: Server) -> None:
    gate = server.gate()
    made = sites(server, Reply(200, RULES, gate=gate))
    with redis_server() as own:
        running = start(crawl, made, settings(own.url(), "koster"))
        await crawl.until(lambda: asked(made) == SITES)
        own.stop()
        own.start()
        gate.open()
        # Who looks at a claim of another meanwhile notices.
        await stand(running, made, warnings=CRAWLS, fewer=True)


async def test_it_is_killed(crawl: Crawl, server: Server) -> None:
    gate = server.gate()
    made = sites(server, Reply(200, RULES, gate=gate))
    with redis_server() as own:
        running = start(crawl, made, settings(own.url(), "koster"))
        await crawl.until(lambda: asked(made) == SITES)
        own.stop()
        gate.open()
        await stand(running, made, warnings=CRAWLS)


REFUSING: dict[str, tuple[list[str], str]] = {
    "out of memory": (["--maxmemory", "1mb", "--maxmemory-policy", "noeviction"], ""),
    "read-only replica": (["--replicaof", "127.0.0.1", "1"], ""),
    "wrong password": (["--requirepass", "right"], f":{PASSWORD}@"),
    "no password": (["--requirepass", "right"], ""),
    "unknown user": ([], f"nobody:{PASSWORD}@"),
}


@pytest.mark.parametrize(("options", "user"), REFUSING.values(), ids=REFUSING)
async def test_it_refuses(crawl: Crawl, server: Server, options: list[str], user: str) -> None:
    made = sites(server)
    with redis_server(*options, password="right" if "right" in options else None) as own:
        running = start(crawl, made, settings(own.url(user), "koster"))
        await stand(running, made, warnings=CRAWLS)


async def test_another_server_is_at_its_port(crawl: Crawl, server: Server) -> None:
    made = sites(server)
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        url = f"redis://koster:{PASSWORD}@127.0.0.1:{port}/0"
        await stand(start(crawl, made, settings(url, "koster")), made, warnings=CRAWLS)


async def test_what_the_fleet_knows_is_believed(crawl: Crawl, server: Server, prefix: str) -> None:
    """The control of the rows above: a value that is right decides, without a fetch."""
    made = sites(server)
    fill(prefix, made, lambda site: opening(site, time.time() - 10))
    urls = [site.url("/private") for site in made]
    result = await crawl(urls=urls, settings=settings(common_server().url(), prefix))
    assert sorted(result.fetched) == sorted(urls)
    assert asked(made) == 0
