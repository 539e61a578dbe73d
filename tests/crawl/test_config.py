"""The settings are read once; a wrong one stops the crawl at its start, and says what is right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from operator import attrgetter
from pathlib import Path
from traceback import format_exception
from types import SimpleNamespace
from typing import Any

import pytest
from harness.crawling import Crawl
from harness.server import Server
from harness.wrong_settings import OVERRIDE, WRONG
from scrapy.robotstxt import ProtegoRobotParser
from scrapy.settings import Settings as ScrapySettings

from scrapy_koster import KosterRobotParser, Rfc9309RobotParser
from scrapy_koster.crawl.config import DEFAULTS, Config
from scrapy_koster.protocol.override import Override
from scrapy_koster.protocol.policy import Unavailable
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import Setting, Settings
from scrapy_koster.storage.memory import MemoryStorage

OVERRIDES = (
    Override(
        site=Site("https", "a.example", 443),
        allow=("/a",),
        reason="the owner agreed",
        until=date(2099, 12, 31),
    ),
)
RIGHT: tuple[tuple[str, Any, str, Any], ...] = (
    ("KOSTER_PARSER", KosterRobotParser, "parser", KosterRobotParser),
    ("KOSTER_PARSER", KosterRobotParser, "parser_is_chosen", True),
    ("KOSTER_STORAGE", "scrapy_koster.storage.memory.MemoryStorage", "storage", MemoryStorage),
    ("KOSTER_SQLITE_PATH", Path("/a/b"), "sqlite_path", "/a/b"),
    ("KOSTER_TIMEOUT_SECS", "0.5", "timeout_secs", 0.5),
    ("KOSTER_REDIRECT_MAX", 0, "redirect_max", 0),
    ("KOSTER_PAGE_META", "proxy, bindaddress", "page_meta", ("proxy", "bindaddress")),
    ("KOSTER_PAGE_DIRECTIVES", "", "page_directives", ()),
    ("KOSTER_PAGE_DIRECTIVES", '["header"]', "page_directives", ("header",)),
    ("ROBOTSTXT_USER_AGENT", b"figtree", "robot", "figtree"),
    ("ROBOTSTXT_USER_AGENT", "", "robot", None),
    ("KOSTER_OVERRIDES", (OVERRIDE | {"site": "HTTPS://A.example:443/"},), "policy.overrides",
     OVERRIDES),
    ("KOSTER_OVERRIDES", [OVERRIDE | {"until": date(2099, 12, 31)}], "policy.overrides", OVERRIDES),
    ("KOSTER_OVERRIDES", json.dumps([OVERRIDE]), "policy.overrides", OVERRIDES),
    ("KOSTER_RESTRICTED_EXPIRY_SECS", 1.5, "policy.restricted_expiry_secs", 1.5),
    ("KOSTER_UNAVAILABLE", "disallow", "policy.unavailable", Unavailable.DISALLOW),
    ("KOSTER_USAGE_PURPOSES", "tdm, search,tdm", "usage.purposes", ("tdm", "search")),
    ("KOSTER_USAGE_FIELD", "", "usage.field", None),
)  # fmt: skip


def config(settings: Mapping[str, Any] | None = None, **spider: Any) -> Config:
    given = settings if isinstance(settings, ScrapySettings) else ScrapySettings(settings)
    crawler: Any = SimpleNamespace(settings=given, spider=SimpleNamespace(**spider))
    return Config.from_crawler(crawler)


@pytest.mark.parametrize(("name", "value", "field", "read"), RIGHT)
def test_a_right_value(name: str, value: Any, field: str, read: Any) -> None:
    assert attrgetter(field)(config({name: value})) == read


BY_RFC9309 = ["scrapy_koster.Rfc9309RobotParser", "scrapy_koster.StrictestRobotParser"]


@pytest.mark.parametrize("parser", BY_RFC9309)
def test_a_copy_lives_a_day_at_most_by_rfc_9309(parser: str) -> None:
    policy = config({"KOSTER_PARSER": parser}).policy
    assert (policy.expiry_secs, policy.expiry_max_secs) == (86_400, 86_400)
    chosen = config({"KOSTER_PARSER": parser, "KOSTER_EXPIRY_SECS": 604_800}).policy
    assert (chosen.expiry_secs, chosen.expiry_max_secs) == (604_800, 2_592_000)


class Foreign(ProtegoRobotParser):
    pass


class Own(Rfc9309RobotParser):
    pass


@pytest.mark.parametrize(
    ("parser", "opens"),
    [(None, False), (BY_RFC9309[0], True), (BY_RFC9309[1], False), (Own, True), (Foreign, False)],
)
def test_401_and_403_follow_the_reading(parser: Any, *, opens: bool) -> None:
    """RFC 9309 opens sites that answer so. A setting decides, whatever the reading is."""
    for chosen in (None, "allow", "disallow"):
        policy = config({"KOSTER_PARSER": parser, "KOSTER_RESTRICTED": chosen}).policy
        assert policy.restricted.value == (chosen or ("allow" if opens else "disallow"))
        assert policy.standard.value == ("RFC 9309" if opens else "draft")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named_and_a_right_one_shown(name: str) -> None:
    for value in WRONG[name]:
        with pytest.raises(ValueError, match=name) as caught:
            config({name: value})
        message = str(caught.value)
        if message.endswith(" See docs/settings.md."):
            assert DEFAULTS[name] in (None, ())
            continue
        shown = re.search(rf"(?:such as|For example:) {name} = (.+)\.$", message)
        assert shown is not None, value
        config({name: eval(shown[1], {})})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("KOSTER_TIMEOUT", "Did you mean KOSTER_TIMEOUT_SECS?"),
        ("KOSTER_EXPIRE_SECS", "Did you mean KOSTER_EXPIRY_SECS?"),
        ("KOSTER_MEMORY_BYTE", "Did you mean KOSTER_MEMORY_BYTES?"),
        ("KOSTER_ENABLED", "Use ROBOTSTXT_OBEY to enable or disable scrapy-koster."),
        ("KOSTER_THE_QUICK_BROWN_FOX", "Remove it."),
    ],
)
def test_a_name_that_is_none(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f"Unknown setting {name}") as caught:
        config({name: 1})
    assert str(caught.value).endswith(hint)


@pytest.mark.parametrize(
    "url",
    [
        "redis://127.0.0.1:6379/0",
        "rediss://user:p%2Fss@redis.example:6380/0?ssl_ca_certs=/etc/ca.pem",
        "unix:///run/redis/redis.sock",
        "unix://user:pass@/run/redis/redis.sock?db=3",
    ],
)
def test_a_url_of_redis(url: str) -> None:
    read = config({"KOSTER_REDIS_URL": url})
    assert read.storage_settings["KOSTER_REDIS_URL"] == url
    assert url not in repr(read)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:secret/tail@a:1/0",
        "redis://u:secret[tail@a:1/0",
        "redis://u@a/0?password=secret&tail=",
    ],
)
def test_a_wrong_url_of_redis_shows_no_password(url: str) -> None:
    wrong = "Invalid KOSTER_REDIS_URL: it is not the URL .* In a user name or a password write %2F"
    with pytest.raises(ValueError, match=wrong) as caught:
        config({"KOSTER_REDIS_URL": url})
    said = "".join(format_exception(caught.value))
    assert not re.search("secret.|tail.", said.replace(repr(url), ""))


# The settings of a storage that somebody else wrote.


class Theirs(MemoryStorage):
    SETTINGS = {
        "THEIR_FOLDER": Setting.path("theirs"),
        "THEIR_SITES": Setting(3, int),
        "KOSTER_THEIR_SITES": Setting.whole(4, least=2),
    }

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings["THEIR_SITES"])
        self.read = [settings[name] for name in ("THEIR_FOLDER", "KOSTER_THEIR_SITES", "BOT_NAME")]

    @classmethod
    def from_settings(cls, settings: Settings) -> Theirs:
        return cls(settings)


def test_a_storage_gets_its_own_settings_and_those_of_scrapy() -> None:
    """Whatever the priority of the setting."""
    settings = ScrapySettings({"KOSTER_STORAGE": Theirs, "KOSTER_THEIR_SITES": "5"}, priority=90)
    storage = config(settings).open_storage("fig")
    assert isinstance(storage, Theirs)
    folder, sites, bot = storage.read
    assert Path(folder).parts[-2:] == (".scrapy", "theirs")
    assert (sites, bot) == (5, "scrapybot")


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("THEIR_SITES", "many", "invalid literal for int() with base 10: 'many'"),
        ("THEIR_SITES", 1e999, "cannot convert float infinity to integer"),
        ("THEIR_FOLDER", 3, "3 is not a path"),
        ("KOSTER_THEIR_SITES", 1, "1 is not a whole number, 2 or more"),
    ],
)
def test_a_wrong_value_of_theirs_stops_the_crawl(name: str, value: Any, wrong: str) -> None:
    default = Theirs.SETTINGS[name].default
    with pytest.raises(ValueError, match="Invalid") as caught:
        config({"KOSTER_STORAGE": Theirs, name: value})
    assert str(caught.value) == f"Invalid {name}: {wrong}. For example: {name} = {default!r}."


def test_a_name_of_theirs_is_known_with_their_storage_alone() -> None:
    with pytest.raises(ValueError, match="Unknown setting KOSTER_THEIR_SITES"):
        config({"KOSTER_THEIR_SITES": 5})
    with pytest.raises(ValueError, match="Did you mean KOSTER_THEIR_SITES"):
        config({"KOSTER_STORAGE": Theirs, "KOSTER_THEIR_SITE": 5})
    config({"KOSTER_STORAGE": Theirs, "KOSTER_REDIS_PREFIX": "a"})  # to switch takes one line


# The name token.


def test_the_name_token_of_the_spider() -> None:
    settings = {"ROBOTSTXT_USER_AGENT": "other"}
    assert config(settings, robotstxt_user_agent="figtree").robot == "figtree"
    assert config(settings, robotstxt_user_agent=None).robot == "other"
    assert config(settings, robotstxt_user_agent="").robot == "other"


@pytest.mark.parametrize("token", ["(FigTree)", " fig", 3])
def test_a_wrong_name_token_of_the_spider(token: object) -> None:
    with pytest.raises(ValueError, match=r'For example: robotstxt_user_agent = "figtree"'):
        config(robotstxt_user_agent=token)


# In a crawl.


async def test_wrong_settings_do_not_matter_where_nothing_is_obeyed(
    crawl: Crawl, server: Server
) -> None:
    site = server.site()
    settings = {"ROBOTSTXT_OBEY": False, "KOSTER_TIMEOUT_SECS": "soon"}
    result = await crawl(urls=[site.url()], settings=settings)
    assert result.fetched == (site.url(),)
