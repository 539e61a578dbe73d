"""3.4, expiration: copies are kept, also for the next crawl, and renewed before they are used."""

from __future__ import annotations

import logging
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from harness import forks
from harness.clocks import JumpingClock
from harness.comparison import RULES, SETTINGS
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Answer, Asked, Gate, Reply, Reset, redirect
from harness.server import Server, Site
from harness.sizes import so_many
from harness.virtual import time
from scrapy import Request
from scrapy.robotstxt import RobotParser
from scrapy.utils.asyncio import call_later

from scrapy_koster import RobotsForbidden, RobotsUnavailable
from scrapy_koster.crawl.engine.compat import robots_parsed
from scrapy_koster.crawl.fetching.retriever import Retriever
from scrapy_koster.protocol.access import Copy
from scrapy_koster.protocol.site import site_of
from scrapy_koster.storage import StorageError
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.sqlite import SQLiteStorage

WEEK = 604_800
MONDAY = "Mon, 13 Nov 2023 00:00:00 GMT"
SITES = so_many(60, 300)


@pytest.fixture
def clock(crawl: Crawl) -> JumpingClock:
    crawl.clock = clock = JumpingClock()
    return clock


class InTurn(RecordingSpider):
    """Asks for its URLs one after the other, whether they can be had or not."""

    async def start(self) -> Any:
        yield self.number(0)

    def number(self, number: int) -> Any:
        return self.ask(self.urls[number], meta={"number": number})

    def page(self, response: Any) -> Any:
        yield from self.then(response.request)

    def fail(self, failure: Any) -> Any:
        super().fail(failure)
        yield from self.then(failure.request)

    def then(self, request: Any) -> Iterator[Any]:
        number = request.meta["number"] + 1
        if number < len(self.urls):
            yield self.number(number)


async def in_turn(crawl: Crawl, site: Site, *paths: str, **settings: Any) -> CrawlResult:
    urls = [site.url(path) for path in paths]
    return await crawl(InTurn, urls=urls, settings={**SETTINGS, **settings})


def later(clock: JumpingClock, seconds: float) -> Callable[[Asked], Reply]:
    """A page after which so much time has passed."""

    def page(_asked: Asked) -> Reply:
        clock.ahead += seconds
        return Reply(200)

    return page


def robots_of(site: Site) -> list[Asked]:
    return [asked for asked in site.requests if asked.path == "/robots.txt"]


def conditions(asked: Asked) -> tuple[str | None, str | None]:
    return asked.header("If-None-Match"), asked.header("If-Modified-Since")


def file_with(**headers: str) -> Reply:
    return Reply(200, RULES, headers={name.replace("_", "-"): v for name, v in headers.items()})


NEW_RULES = Reply(200, "User-agent: *\nDisallow: /new\n", headers={"ETag": '"2"'})


# Renewal.


async def test_a_stale_copy_is_revalidated_before_it_is_used(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"', Last_Modified=MONDAY), Reply(304)]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/secret", "/2", "/3")
    paths = [asked.path for asked in site.requests]
    assert paths == ["/robots.txt", "/1", "/robots.txt", "/2", "/3"]
    assert [url for url, _ in result.refused] == [site.url("/secret")]
    first, second = robots_of(site)
    assert conditions(first) == (None, None)
    assert conditions(second) == ('"1"', MONDAY)
    assert result.stats["koster/revalidated"] == 1
    assert result.stats["robotstxt/response_status_count/304"] == 1
    [summary] = [told for told in result.logged(logging.INFO) if told.startswith("Sites: ")]
    assert summary.endswith("1 fetched, 0 from storage, 1 revalidated")


async def test_a_fresh_copy_is_not_asked_for_again(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = file_with(ETag='"1"')
    site.page("/1", later(clock, WEEK - 100))
    await in_turn(crawl, site, "/1", "/2")
    assert site.asked("/robots.txt") == 1


async def test_a_renewed_copy_is_fresh_again(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(304)]
    for path in ("/1", "/2", "/3", "/4"):
        site.page(path, later(clock, WEEK * 0.6))
    result = await in_turn(crawl, site, "/1", "/2", "/3", "/4", "/5")
    assert site.asked("/robots.txt") == 3
    assert result.stats["koster/revalidated"] == 2


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ({"ETag": '"1"'}, ('"1"', None)),
        ({"ETag": 'W/"1"'}, ('W/"1"', None)),
        ({"Last_Modified": MONDAY}, (None, MONDAY)),
        ({}, (None, None)),
    ],
    ids=["ETag", "weak ETag", "Last-Modified", "neither"],
)
async def test_the_conditions_are_what_the_server_gave(
    crawl: Crawl,
    server: Server,
    clock: JumpingClock,
    headers: dict[str, str],
    sent: tuple[str | None, str | None],
) -> None:
    site = server.site()
    site.robots = [file_with(**headers), NEW_RULES]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/secret", "/new")
    assert conditions(robots_of(site)[1]) == sent
    assert site.pages_asked == ["/1", "/secret"]
    assert [url for url, _ in result.refused] == [site.url("/new")]
    assert "koster/revalidated" not in result.stats


async def test_304_to_an_unconditional_request_renews_nothing(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(), Reply(304)]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/2")
    assert [type(error) for _, error in result.refused] == [RobotsUnavailable]
    assert "koster/revalidated" not in result.stats


async def test_the_conditions_are_for_the_url_that_answered(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = redirect("/moved", 302)
    site.page("/moved", [file_with(ETag='"1"'), Reply(304)])
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/2")
    assert [conditions(asked)[0] for asked in robots_of(site)] == [None, None]
    assert [asked.path for asked in site.requests if conditions(asked)[0]] == ["/moved"]
    assert result.stats["koster/revalidated"] == 1


async def test_a_page_has_no_conditions(crawl: Crawl, server: Server, clock: JumpingClock) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(304)]
    site.page("/1", later(clock, WEEK + 1))
    await in_turn(crawl, site, "/1", "/2")
    pages = [asked for asked in site.requests if asked.path != "/robots.txt"]
    assert {conditions(page) for page in pages} == {(None, None)}


async def test_what_a_renewal_brings_takes_the_place_of_the_copy(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(404), Reply(403)]
    site.page("/1", later(clock, WEEK + 1))
    site.page("/secret", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/secret", "/2")
    assert site.pages_asked == ["/1", "/secret"]
    assert [conditions(asked)[0] for asked in robots_of(site)] == [None, '"1"', None]
    [(_, error)] = result.refused
    assert "HTTP 403" in str(error)


@pytest.mark.parametrize(
    ("status", "life"),
    [(404, WEEK), (403, 3600)],
    ids=["404: KOSTER_EXPIRY_SECS", "403: KOSTER_RESTRICTED_EXPIRY_SECS"],
)
async def test_the_life_of_other_answers(
    crawl: Crawl, server: Server, clock: JumpingClock, status: int, life: int
) -> None:
    site = server.site()
    site.robots = Reply(status)
    await in_turn(crawl, site, "/1")
    clock.ahead = life - 100
    await in_turn(crawl, site, "/2")
    assert site.asked("/robots.txt") == 1
    clock.ahead = life + 1
    await in_turn(crawl, site, "/3")
    assert site.asked("/robots.txt") == 2


async def test_robots_parsed_is_sent_for_each_parser(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    """One that is found in the storage is new to the crawl; one that is renewed is not."""
    parsed: list[str] = []

    class Listening(InTurn):
        @classmethod
        def from_crawler(cls, crawler: Any, *args: Any, **kwargs: Any) -> Any:
            crawler.signals.connect(cls.listen, robots_parsed)
            return super().from_crawler(crawler, *args, **kwargs)

        @staticmethod
        def listen(robotparser: RobotParser, request: Request) -> None:
            assert not robotparser.allowed(request.url.replace("/1", "/secret"), "figtree")
            parsed.append(request.url)

    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(304)]
    site.page("/1", later(clock, WEEK + 1))
    urls = [site.url("/1"), site.url("/2")]
    for _ in range(2):
        await crawl(Listening, urls=urls, settings=SETTINGS)
        clock.ahead = 0
    assert parsed == [site.url("/1"), site.url("/1")]


# What the server says of its life.


@pytest.mark.parametrize(
    "headers",
    [
        {"Cache_Control": "max-age=0"},
        {"Cache_Control": "no-cache"},
        {"Cache_Control": "no-store"},
        {"Expires": "0"},
        {"Pragma": "no-cache"},
    ],
    ids=lambda headers: str(*headers.values()),
)
async def test_one_revalidation_in_the_least_life(
    crawl: Crawl, server: Server, clock: JumpingClock, headers: dict[str, str]
) -> None:
    """11 pages, 100 s after each other; KOSTER_EXPIRY_MIN_SECS is 300 s."""
    site = server.site()
    site.robots = [
        file_with(ETag='"1"', **headers),
        Reply(304, headers={"Cache-Control": "max-age=0"}),
    ]
    site.pages(later(clock, 100))
    result = await in_turn(crawl, site, *(f"/{n}" for n in range(11)))
    assert site.asked("/robots.txt") == 4  # at 0, 300, 600 and 900 s
    assert result.stats["koster/revalidated"] == 3


@pytest.mark.parametrize(
    ("headers", "life"),
    [
        ({"Cache_Control": "max-age=3600"}, 3600),
        ({"Cache_Control": "max-age=3600", "Age": "600"}, 3000),
        ({"Date": MONDAY, "Expires": "Mon, 13 Nov 2023 02:00:00 GMT"}, 7200),
        ({"Cache_Control": "max-age=99999999"}, 2_592_000),
        ({"Cache_Control": "max-age=soon", "Expires": "never"}, WEEK),
    ],
    ids=["max-age", "Age", "Expires", "longest", "nonsense"],
)
async def test_the_life_that_the_server_states(
    crawl: Crawl, server: Server, headers: dict[str, str], life: int
) -> None:
    site = server.site()
    site.robots = file_with(**headers)
    before = time.time()
    await in_turn(crawl, site, "/1")
    copy = stored(crawl, site)
    assert before + life - 1 <= copy.expires <= time.time() + life
    assert before - 1 <= copy.fetched <= time.time()


@pytest.mark.parametrize(
    "settings",
    [{"KOSTER_EXPIRY_SECS": 0}, {"KOSTER_EXPIRY_MIN_SECS": 0}],
    ids=lambda settings: str(*settings),
)
async def test_a_copy_without_life_serves_those_who_waited_for_it(
    crawl: Crawl, server: Server, settings: dict[str, Any]
) -> None:
    site = server.site()
    headers = {"Cache_Control": "max-age=0"} if "KOSTER_EXPIRY_MIN_SECS" in settings else {}
    site.robots = file_with(**headers)
    result = await crawl(urls=site.urls(50), settings={**SETTINGS, **settings})
    assert len(result.fetched) == 50
    assert site.asked("/robots.txt") <= 1 + result.seconds


# A renewal that fails.


@pytest.mark.parametrize("failure", [Reply(503), Reset()], ids=["503", "reset"])
async def test_a_renewal_that_fails_defers(
    crawl: Crawl, server: Server, clock: JumpingClock, failure: Answer
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), failure]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/2")
    assert site.pages_asked == ["/1"]
    assert [type(error) for _, error in result.refused] == [RobotsUnavailable]
    assert site.asked("/robots.txt") >= 3
    assert {conditions(asked)[0] for asked in robots_of(site)[1:]} == {'"1"'}


async def test_a_renewal_that_fails_at_first(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503), Reply(304)]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/2", "/secret", KOSTER_DEFER_LIMIT_SECS=10)
    assert site.pages_asked == ["/1", "/2"]
    assert [type(error) for _, error in result.refused] == [RobotsForbidden]
    assert result.stats["koster/revalidated"] == 1
    assert result.stats["koster/deferred/sites"] == 1


async def test_the_last_good_copy_serves_for_a_while(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    site.page("/2", later(clock, 3000))
    site.page("/3", later(clock, 3000))
    result = await in_turn(
        crawl, site, "/1", "/2", "/3", "/secret", "/4", KOSTER_STALE_IF_ERROR_SECS=3600
    )
    assert site.pages_asked == ["/1", "/2", "/3"]
    assert [(url, type(error)) for url, error in result.refused] == [
        (site.url("/secret"), RobotsUnavailable),
        (site.url("/4"), RobotsUnavailable),
    ]


async def test_the_last_good_copy_still_forbids(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    result = await in_turn(crawl, site, "/1", "/secret", "/2", KOSTER_STALE_IF_ERROR_SECS=3600)
    assert site.pages_asked == ["/1", "/2"]
    assert [type(error) for _, error in result.refused] == [RobotsForbidden]
    assert "koster/deferred/sites" not in result.stats


async def test_the_last_good_copy_serves_the_next_crawl_too(
    crawl: Crawl, server: Server, clock: JumpingClock
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    settings = {"KOSTER_STALE_IF_ERROR_SECS": 3600, "KOSTER_DEFER_FIRST_SECS": 100}
    await in_turn(crawl, site, "/1", **settings)
    clock.ahead = WEEK + 1
    assert (await in_turn(crawl, site, "/2", **settings)).fetched == (site.url("/2"),)
    assert (await in_turn(crawl, site, "/3", **settings)).fetched == (site.url("/3"),)
    assert site.asked("/robots.txt") == 2


@pytest.mark.parametrize(("policy", "pages"), [("allow", ["/1", "/2"]), ("disallow", ["/1"])])
async def test_a_renewal_that_fails_by_policy(
    crawl: Crawl, server: Server, clock: JumpingClock, policy: str, pages: list[str]
) -> None:
    site = server.site()
    site.robots = [file_with(ETag='"1"'), Reply(503)]
    site.page("/1", later(clock, WEEK + 1))
    await in_turn(crawl, site, "/1", "/2", KOSTER_UNAVAILABLE=policy)
    assert site.pages_asked == pages


# From one crawl to the next.


def path_of(crawl: Crawl) -> Path:
    return crawl.folder / "robots.sqlite3"


def stored(crawl: Crawl, site: Site) -> Copy:
    storage = SQLiteStorage(str(path_of(crawl)), "scrapy")
    home = site_of(site.url())
    assert home is not None
    copy = storage.get(home)
    storage.close()
    assert isinstance(copy, Copy)
    return copy


def sites_stored(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {site for (site,) in connection.execute("SELECT site FROM known")}


def expire_all(path: Path) -> None:
    with closing(SQLiteStorage(str(path), "scrapy")) as storage:
        for site, known in list(storage.sites()):
            assert isinstance(known, Copy)
            storage.forget(site)
            fetched, expires = known.fetched - 1e6, known.expires - 1e6
            storage.put(site, replace(known, fetched=fetched, expires=expires))


def three_hundred(server: Server) -> list[Site]:
    sites = [server.site() for _ in range(SITES)]
    for number, site in enumerate(sites):
        tag = f'"{number}"'
        site.robots = _answering(tag)
    return sites


def _answering(tag: str) -> Callable[[Asked], Reply]:
    def robots(asked: Asked) -> Reply:
        if asked.header("If-None-Match") == tag:
            return Reply(304, headers={"ETag": tag})
        return Reply(200, RULES, headers={"ETag": tag})

    return robots


MANY = {**SETTINGS, "CONCURRENT_REQUESTS": 32, "KOSTER_TIMEOUT_SECS": 30, "LOG_LEVEL": "INFO"}


def urls_of(sites: list[Site]) -> list[str]:
    return [site.url(path) for path in ("/page", "/secret") for site in sites]


def asked_in_all(sites: list[Site]) -> int:
    return sum(site.asked("/robots.txt") for site in sites)


@pytest.mark.bound(150)
async def test_a_second_crawl_asks_for_nothing_and_a_third_for_changes(
    crawl: Crawl, server: Server
) -> None:
    sites = three_hundred(server)
    secrets = [site.url("/secret") for site in sites]
    first = await crawl(urls=secrets, settings=MANY)
    assert len(first.refused) == SITES
    assert asked_in_all(sites) == first.stats["robotstxt/request_count"] == SITES
    assert first.stats["koster/storage/miss"] == SITES

    second = await crawl(urls=[site.url("/page") for site in sites], settings=MANY)
    assert len(second.fetched) == SITES
    assert asked_in_all(sites) == SITES
    assert "robotstxt/request_count" not in second.stats
    assert second.stats["koster/storage/hit"] == SITES

    expire_all(path_of(crawl))
    third = await crawl(urls=secrets, settings=MANY)
    assert len(third.refused) == SITES
    assert asked_in_all(sites) == 2 * SITES
    tags = [conditions(robots_of(site)[1])[0] for site in sites]
    assert tags == [f'"{number}"' for number in range(SITES)]
    assert third.stats["koster/revalidated"] == SITES
    assert third.stats["robotstxt/response_status_count/304"] == SITES


SCRIPT = """
import sys
from scrapy import Spider
from scrapy.crawler import CrawlerProcess

class Pages(Spider):
    name = "pages"
    start_urls = sys.argv[2:]

process = CrawlerProcess({
    "ADDONS": {"scrapy_koster.Addon": 500},
    "KOSTER_SQLITE_PATH": sys.argv[1],
    "KOSTER_TIMEOUT_SECS": 4,  # and so for as long its claims outlive it
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Pages)
process.start()
"""


@pytest.mark.long
@pytest.mark.bound(150)
async def test_kill_in_the_middle_loses_no_stored_copy(crawl: Crawl, server: Server) -> None:
    sites = three_hundred(server)
    gate = Gate()
    for site in sites[SITES // 2 :]:
        site.robots = Reply(200, RULES, gate=gate)
    script = crawl.folder / "crawl.py"
    script.write_text(SCRIPT)
    process = forks.Popen(
        [sys.executable, str(script), str(path_of(crawl)), *(site.url("/page") for site in sites)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        await crawl.until(lambda: sum(len(site.pages_asked) for site in sites) >= SITES // 3)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    visited = {str(site_of(site.url())) for site in sites if site.pages_asked}
    assert SITES // 3 <= len(visited) < SITES
    kept = sites_stored(path_of(crawl))
    assert visited <= kept

    gate.open()
    before = {site.url(): site.asked("/robots.txt") for site in sites}
    result = await crawl(urls=[site.url("/secret") for site in sites], settings=MANY)
    assert len(result.refused) == SITES
    again = {
        str(site_of(site.url())) for site in sites if site.asked("/robots.txt") > before[site.url()]
    }
    assert again.isdisjoint(kept)
    assert "koster/storage/error" not in result.stats


async def test_two_crawls_share_a_file(crawl: Crawl, server: Server) -> None:
    sites = [server.site() for _ in range(40)]
    for site in sites:
        site.robots = RULES
    urls = [site.url("/secret") for site in sites]
    results = await crawl.together(*(crawl(urls=urls, settings=MANY) for _ in range(2)))
    assert [len(result.refused) for result in results] == [40, 40]
    assert all("koster/storage/error" not in result.stats for result in results)
    assert len(sites_stored(path_of(crawl))) == 40


async def test_what_is_kept_in_memory_ends_with_the_crawl(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.robots = RULES
    settings = {"KOSTER_STORAGE": "scrapy_koster.storage.memory.MemoryStorage"}
    for _ in range(2):
        await in_turn(crawl, site, "/1", "/secret", **settings)
    assert site.asked("/robots.txt") == 2
    assert not path_of(crawl).exists()


async def test_sites_that_memory_has_no_room_for_are_in_the_storage(
    crawl: Crawl, server: Server
) -> None:
    sites = [server.site() for _ in range(6)]
    for site in sites:
        site.robots = RULES
    urls = [site.url(f"/{n}") for n in range(4) for site in sites]
    settings = {**SETTINGS, "KOSTER_MEMORY_SITES": 2}
    result = await crawl(InTurn, urls=urls, settings=settings)
    assert len(result.fetched) == len(urls)
    assert asked_in_all(sites) == 6
    assert result.stats["koster/storage/hit"] == 18


# A storage that fails.


def corrupt(path: Path) -> Any:
    path.write_bytes(b"this is no database" * 1000)


def corrupted_later(path: Path) -> Any:
    storage = SQLiteStorage(str(path), "scrapy")
    storage.close()
    content = bytearray(path.read_bytes())
    content[1000:] = b"\xff" * (len(content) - 1000)
    path.write_bytes(content)


def foreign(path: Path) -> Any:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (x)")


def newer(path: Path) -> Any:
    SQLiteStorage(str(path)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def directory(path: Path) -> Any:
    path.mkdir()


def below_a_file(path: Path) -> Any:
    path.parent.rmdir()
    path.parent.write_text("in the way")


def read_only(path: Path) -> Any:
    if os.geteuid() == 0:
        pytest.skip("nothing is read-only for root")
    path.parent.chmod(0o500)


@pytest.mark.parametrize(
    "harm",
    [corrupt, corrupted_later, foreign, newer, directory, below_a_file, read_only],
    ids=lambda harm: harm.__name__,
)
async def test_a_storage_that_fails_is_a_miss(
    crawl: Crawl, server: Server, harm: Callable[[Path], Any]
) -> None:
    path = crawl.folder / "koster" / "robots.sqlite3"
    path.parent.mkdir()
    harm(path)
    await obeys_all_the_same(crawl, server, KOSTER_SQLITE_PATH=str(path))


async def obeys_all_the_same(crawl: Crawl, server: Server, **settings: Any) -> CrawlResult:
    sites = [server.site() for _ in range(10)]
    for site in sites:
        site.robots = RULES
    result = await crawl(urls=urls_of(sites), settings={**SETTINGS, **settings})
    assert sorted(result.fetched) == sorted(site.url("/page") for site in sites)
    assert {type(error) for _, error in result.refused} == {RobotsForbidden}
    assert asked_in_all(sites) == 10
    assert result.stats["koster/storage/error"] >= 1
    assert result.stats["koster/storage/miss"] == 10
    [warning] = result.logged(logging.WARNING, "scrapy_koster")
    assert warning.startswith("The storage of robots.txt failed")
    return result


async def test_a_locked_storage_holds_nobody_up(crawl: Crawl, server: Server) -> None:
    """One time-out, and one more after a rest; not one for each site."""
    opened: list[str] = []

    class Opened(SQLiteStorage):
        @classmethod
        def from_settings(cls, settings: Any) -> SQLiteStorage:
            opened.append(settings["KOSTER_SQLITE_PATH"])
            return super().from_settings(settings)

    path = path_of(crawl)
    SQLiteStorage(str(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        await obeys_all_the_same(crawl, server, KOSTER_STORAGE=Opened)
    assert set(opened) == {str(path)}
    assert len(opened) <= 2


async def test_a_storage_that_is_opened_while_the_crawl_ends_is_closed(
    crawl: Crawl, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, closing, closed = Event(), Event(), Event()

    class Opened(SQLiteStorage):
        blocking = True

        def __init__(self, path: str, robot: str) -> None:
            opening.set()
            assert closing.wait(10)
            super().__init__(path, robot)

        def close(self) -> None:
            super().close()
            closed.set()

    close = Retriever.close

    async def close_while_opening(retriever: Retriever) -> None:
        call_later(0, closing.set)
        await close(retriever)

    monkeypatch.setattr(Retriever, "close", close_while_opening)
    running = crawl.start(urls=server.site().urls(1), settings={"KOSTER_STORAGE": Opened})
    await crawl.until(opening.is_set)
    await running.stop()
    await crawl.until(closed.is_set)


async def test_a_storage_that_is_locked_later_holds_nobody_up(crawl: Crawl, server: Server) -> None:
    sites = [server.site() for _ in range(3)]
    path = path_of(crawl)
    SQLiteStorage(str(path)).close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:

        def lock(_asked: Asked) -> Reply:
            if not other.in_transaction:
                other.execute("BEGIN IMMEDIATE")
            return Reply(200, RULES)

        for site in sites:
            site.robots = lock
        result = await crawl(urls=urls_of(sites), settings=MANY)
    assert (len(result.fetched), len(result.refused)) == (3, 3)
    assert result.stats["koster/storage/error"] >= 1


class Broken(MemoryStorage):
    """A storage that somebody else wrote."""

    def get(self, site: Any) -> Any:
        raise ZeroDivisionError

    def put(self, site: Any, copy: Any) -> Any:
        raise StorageError("full")


class Blocking(Broken):
    blocking = True


@pytest.mark.parametrize("storage", [Broken, Blocking])
async def test_another_storage_that_fails(
    crawl: Crawl, server: Server, storage: type[MemoryStorage]
) -> None:
    await obeys_all_the_same(crawl, server, KOSTER_STORAGE=storage)
