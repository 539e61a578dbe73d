"""Names in User-Agent headers of robots and browsers, from documentation."""

from __future__ import annotations

import pytest
from harness.audit_logs import BEGAN, Hit, written
from harness.audits import audited
from harness.user_agents import APPS_NAMED, BROWSERS, ROBOTS, Sent

from scrapy_koster.audit.judging import Version
from scrapy_koster.audit.kinds import Kind, fallback_of
from scrapy_koster.audit.naming import Namer

FILES = {
    "names nobody": b"User-agent: *\nDisallow: /\n",
    "names apps": "".join(f"User-agent: {name}\nDisallow: /\n\n" for name in APPS_NAMED).encode(),
}


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
@pytest.mark.parametrize("sent", ROBOTS, ids=lambda sent: sent.name)
def test_a_robot_is_named(sent: Sent, file: bytes) -> None:
    namer = Namer([file])
    assert namer.named(sent.header) == sent.name
    assert namer.kind(sent.name) is Kind(sent.kind)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
@pytest.mark.parametrize("header", BROWSERS)
def test_a_browser_is_no_robot(header: str, file: bytes) -> None:
    assert Namer([file]).named(header) is None


def test_the_name_that_the_file_has_is_taken_of_several() -> None:
    namer = Namer([b"User-agent: Crawler\nDisallow: /\n"])
    assert namer.named("Mozilla/5.0 (compatible; Seekport Crawler; http://a.example)") == "crawler"
    assert namer.named("Mozilla/5.0 (X11; Linux x86_64; http://a.example) crawler") == "crawler"
    assert namer.named("Mozilla/5.0 (compatible; MSIE 9.0; compatible; Crawler)") == "crawler"
    assert namer.named("Mozilla/5.0 (compatible; )") is None
    assert Namer([]).named("Mozilla/5.0 (x; +http://yandex.com/bots)") == "bots"


def test_other_fallbacks_are_told() -> None:
    for name, said in (("applebot", "googlebot"), ("adsbot-google", "not that for *")):
        assert said in (fallback_of(name) or "")
    assert fallback_of("googlebot") is None


def test_the_kinds_are_counted() -> None:
    agents = ["GPTBot/1.2", "ClaudeBot/1.0", "CCBot/2.0 (https://commoncrawl.org/faq/)"]
    hits = [Hit(BEGAN + n, agent, "/a") for n, agent in enumerate(agents)]
    hits += [Hit(BEGAN + 9, "GPTBot/1.2", "/private"), Hit(BEGAN + 9, "Googlebot/2.1", "/private")]
    rules = (Version("robots.txt", float("-inf"), b"User-agent: *\nDisallow: /private\n"),)
    found = audited(written(hits), versions=rules)
    assert found["kinds"] == [
        {"kind": "AI", "robots": 3, "disobeyed": 1, "requests": 4, "violations": 1},
        {"kind": "search", "robots": 1, "disobeyed": 1, "requests": 1, "violations": 1},
    ]
