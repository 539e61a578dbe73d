"""KOSTER_ARCHIVE: what a crawl goes by is in WARC files, which tools that are not ours read."""

from __future__ import annotations

import gzip
import json
import logging
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from harness.archives import check, read
from harness.comparison import RULES
from harness.crawling import Crawl, CrawlResult, RecordingSpider
from harness.replies import Reply, redirect
from harness.server import Server, Site
from scrapy import Request

from scrapy_koster.archive.folder import Folder
from scrapy_koster.protocol.site import site_of
from scrapy_koster.storage.memory import MemoryStorage


def kinds(folder: Path) -> Counter[str]:
    return Counter(record.headers["WARC-Type"] for record in read(folder))


def known_of(folder: Path, site: Site) -> list[Any]:
    home = site_of(site.url())
    assert home is not None
    archive = Folder(str(folder))
    return [archive.whole(outcome) for outcome in archive.outcomes(home)]


@pytest.fixture
def folder(crawl: Crawl) -> Iterator[Path]:
    """Of the archive; what is in it is checked at the end."""
    folder = crawl.folder / "evidence"
    crawl.always |= {"KOSTER_ARCHIVE": str(folder)}
    yield folder
    check(folder)


async def test_each_hop_is_a_request_and_a_response(
    crawl: Crawl, server: Server, folder: Path
) -> None:
    site, other = server.site(), server.site(host="127.0.0.2")
    site.robots = redirect(other.url("/rules"))
    other.page("/rules", Reply(200, RULES, headers={"Set-Cookie": "a=b", "ETag": '"1"'}))
    result = await crawl(urls=[site.url("/page"), site.url("/secret")])
    records = read(folder)
    assert [record.headers["WARC-Type"] for record in records] == [
        "warcinfo", "response", "request", "response", "request", "metadata",
    ]  # fmt: skip
    info, first, first_request, second, _, outcome = records
    assert first.headers["WARC-Target-URI"] == site.url("/robots.txt")
    assert b"HTTP/1.1 302" in first.block or b"HTTP/1.1 301" in first.block
    assert first_request.headers["WARC-Concurrent-To"] == first.headers["WARC-Record-ID"]
    assert second.headers["WARC-Target-URI"] == other.url("/rules")
    assert second.headers["WARC-IP-Address"] == "127.0.0.2"
    assert second.block.endswith(b"\r\n\r\n" + RULES.encode())
    assert b"Set-Cookie" not in second.block
    assert b'Etag: "1"' in second.block or b'ETag: "1"' in second.block
    [verdict] = result.verdicts
    assert verdict.digest == second.headers["WARC-Payload-Digest"]
    assert verdict.digest == f"sha256:{sha256(RULES.encode()).hexdigest()}"
    assert verdict.to_dict()["record_id"] == second.headers["WARC-Record-ID"]
    assert outcome.headers["WARC-Refers-To"] == second.headers["WARC-Record-ID"]
    for record in records[1:]:
        assert record.headers["WARC-Warcinfo-ID"] == info.headers["WARC-Record-ID"]
    [copy] = known_of(folder, site)
    assert copy == verdict.known
    assert result.stats["koster/archive/records"] == 5
    [path] = folder.glob("*.warc.gz")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.with_name(path.name.replace(".warc.gz", ".cdxj")).is_file()


async def test_the_settings_that_decide_are_told_and_no_secret(
    crawl: Crawl, server: Server, folder: Path
) -> None:
    site, proxy = server.site(), server.proxy()
    site.robots = redirect(site.url("/moved").replace("://", "://user:pa@ss@"))
    site.page("/moved", Reply(503, headers={"Location": "http://someone:s3cr3t@h/", "X": "1"}))
    address = proxy.url("").replace("://", "://alice:s3cr3t@").rstrip("/")
    headers = {"Authorization": "Basic s3cr3t", "Cookie": "s3cr3t"}
    settings = {
        "ROBOTSTXT_USER_AGENT": "figtree",
        "USER_AGENT": "FigTree/1 (+http://fig.example)",
        "KOSTER_RESTRICTED": "allow",
        "KOSTER_REDIS_URL": "redis://:s3cr3t@localhost",
        "KOSTER_PARSER": "scrapy_koster.StrictestRobotParser",
        "KOSTER_DEFER_LIMIT_SECS": 0,
        "KOSTER_STORAGE": MemoryStorage,
    }
    page = Request(site.url("/page"), headers=headers, meta={"proxy": address})
    await crawl(urls=[page], settings=settings)
    [path] = folder.glob("*.warc.gz")
    info = Folder(str(folder)).info(path)
    assert info["software"].startswith("scrapy-koster/")
    assert info["koster-robot"] == "figtree"
    assert info["koster-spider"] == RecordingSpider.name
    assert info["http-header-user-agent"] == "FigTree/1 (+http://fig.example)"
    told = json.loads(info["koster-settings"])
    assert told["KOSTER_RESTRICTED"] == "allow"
    assert told["KOSTER_PARSER"] == "scrapy_koster.StrictestRobotParser"
    assert told["KOSTER_MAX_BYTES"] == 512000
    written = gzip.decompress(path.read_bytes())
    assert b"/moved" in written
    assert b"User-Agent: " in written
    assert b"WARC-IP-Address" not in written  # it would be the proxy's
    for secret in ("s3cr3t", "pa@ss", "user:", "someone:", "alice:", "Authorization", "Cookie"):
        assert secret.encode() not in written


async def test_a_body_that_is_cut_and_one_that_is_compressed(
    crawl: Crawl, server: Server, folder: Path
) -> None:
    long, packed = server.site(), server.site()
    long.robots = RULES + "# more\n" * 100_000
    packed.robots = Reply(200, gzip.compress(RULES.encode()), headers={"Content-Encoding": "gzip"})
    urls = [site.url("/secret") for site in (long, packed)]
    result = await crawl(urls=urls, settings={"KOSTER_MAX_BYTES": 100_000})
    assert len(result.verdicts) == 2
    found = {
        (record.headers.get("WARC-Target-URI"), record.headers["WARC-Type"]): record
        for record in read(folder)
    }
    cut = found[long.url("/robots.txt"), "response"]
    assert cut.headers["WARC-Truncated"] == "length"
    kept = found[long.url("/robots.txt"), "conversion"].block
    assert kept.endswith(b"\n")
    assert kept in cut.block
    assert found[packed.url("/robots.txt"), "conversion"].block == RULES.encode()
    for site in (long, packed):
        [copy] = known_of(folder, site)
        [verdict] = [each for each in result.verdicts if each.site == site_of(site.url())]
        assert copy == verdict.known


async def test_a_renewed_copy_is_a_revisit_of_its_record(
    crawl: Crawl, server: Server, folder: Path
) -> None:
    site = server.site()
    site.robots = [Reply(200, RULES, headers={"ETag": '"1"'}), Reply(304)]
    settings = {"KOSTER_EXPIRY_SECS": 0, "KOSTER_EXPIRY_MIN_SECS": 0}
    for _ in range(2):
        await crawl(urls=[site.url("/secret")], settings=settings)
        await crawl.sleep(5)
    records = read(folder)
    [response] = [each for each in records if each.headers["WARC-Type"] == "response"]
    [revisit] = [each for each in records if each.headers["WARC-Type"] == "revisit"]
    [resource] = [each for each in records if each.headers["WARC-Type"] == "resource"]
    assert revisit.headers["WARC-Profile"].endswith("/server-not-modified")
    assert revisit.headers["WARC-Refers-To"] == resource.headers["WARC-Record-ID"]
    digest = response.headers["WARC-Payload-Digest"]
    assert revisit.headers["WARC-Payload-Digest"] == digest
    assert resource.headers["WARC-Payload-Digest"] == digest
    assert [copy.body for copy in known_of(folder, site)][-1] == RULES.encode()


async def test_a_warm_storage_leaves_evidence(crawl: Crawl, server: Server, folder: Path) -> None:
    sites = [server.site() for _ in range(3)]
    for site in sites:
        site.robots = RULES
    urls = [site.url("/secret") for site in sites]
    cold = await crawl(urls=urls, settings={"KOSTER_ARCHIVE": None})
    assert not folder.exists()
    assert {verdict.to_dict()["record_id"] for verdict in cold.verdicts} == {None}
    await crawl.sleep(5)
    result = await crawl(urls=urls)
    assert kinds(folder) == {"warcinfo": 1, "resource": 3, "metadata": 3}
    assert {site.asked("/robots.txt") for site in sites} == {1}
    for verdict in result.verdicts:
        [record] = [
            each
            for each in read(folder)
            if each.headers["WARC-Record-ID"] == verdict.to_dict()["record_id"]
        ]
        assert record.block == RULES.encode()
        assert record.headers["WARC-Date"][:19] + "Z" == verdict.to_dict()["fetched"]


def warnings(result: CrawlResult) -> list[str]:
    return result.logged(logging.WARNING, "scrapy_koster.crawl.fetching.archiver")


async def test_a_folder_that_cannot_be_written_is_one_warning(crawl: Crawl, server: Server) -> None:
    sites = [server.site() for _ in range(3)]
    for site in sites:
        site.robots = RULES
    urls = [site.url(path) for site in sites for path in ("/page", "/secret")]
    settings = {"KOSTER_ARCHIVE": "/proc/nothing", "KOSTER_STORAGE": MemoryStorage}
    result = await crawl(urls=urls, settings=settings)
    assert len(result.fetched) == 3
    assert len(result.refused) == 3
    assert len(warnings(result)) == 1
    assert "/proc/nothing" in warnings(result)[0]
    assert result.stats["koster/archive/error"] == 3
    assert {verdict.to_dict()["record_id"] for verdict in result.verdicts} == {None}
