"""The settings, read once into one frozen value."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.project import data_path

from scrapy_koster.crawl.engine.private import belonging
from scrapy_koster.crawl.settingreader import SettingReader
from scrapy_koster.parsers.rfc9309 import Rfc9309RobotParser
from scrapy_koster.parsers.strictest import StrictestRobotParser
from scrapy_koster.protocol.delay import CrawlDelay, Pace
from scrapy_koster.protocol.nametoken import joined, name_token, names_of
from scrapy_koster.protocol.policy import Html, Missing, Policy, Restricted, Unavailable
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.reading import Decider
from scrapy_koster.protocol.usage import UsageAction, UsageChoice, UsageUnknown
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS
from scrapy_koster.storage.setting import Setting
from scrapy_koster.storage.sqlite import SQLiteStorage

if TYPE_CHECKING:
    from scrapy.core.scheduler import BaseScheduler
    from scrapy.crawler import Crawler
    from scrapy.robotstxt import RobotParser

    from scrapy_koster.storage.port import Storage

FALLBACK_SCHEDULER = "KOSTER_FALLBACK_SCHEDULER"
SCHEDULER_METHODS = ("has_pending_requests", "enqueue_request", "next_request")
"""Those of Scrapy's scheduler interface that are not optional."""

STORAGE_SETTINGS: Mapping[str, Setting] = {
    **MemoryStorage.SETTINGS,
    **SQLiteStorage.SETTINGS,
    **REDIS_SETTINGS,
}
"""Of the storages of the package: each is known, whichever storage a crawl has."""

DEFAULTS: Mapping[str, Any] = {
    "KOSTER_PARSER": "scrapy_koster.KosterRobotParser",
    "KOSTER_STORAGE": "scrapy_koster.storage.sqlite.SQLiteStorage",
    **{name: setting.default for name, setting in STORAGE_SETTINGS.items()},
    "KOSTER_EXPIRY_SECS": 604800,
    "KOSTER_EXPIRY_MIN_SECS": 300,
    "KOSTER_EXPIRY_MAX_SECS": 2592000,
    "KOSTER_RESTRICTED_EXPIRY_SECS": 3600,
    "KOSTER_STALE_IF_ERROR_SECS": 0,
    "KOSTER_TIMEOUT_SECS": 30,
    "KOSTER_MAX_BYTES": 512000,
    "KOSTER_REDIRECT_MAX": 5,
    "KOSTER_PAGE_META": ("proxy", "bindaddress", "impersonate", "impersonate_args"),
    "KOSTER_DEFER_FIRST_SECS": 10,
    "KOSTER_DEFER_MAX_SECS": 600,
    "KOSTER_DEFER_LIMIT_SECS": 300,
    "KOSTER_IDLE_LIMIT_SECS": 30,
    "KOSTER_CRAWL_DELAY": "ignore",
    "KOSTER_CRAWL_DELAY_MAX_SECS": 60,
    "KOSTER_RESTRICTED": "disallow",
    "KOSTER_MISSING": "allow",
    "KOSTER_HTML_ROBOTSTXT": "allow",
    "KOSTER_UNAVAILABLE": "defer",
    "KOSTER_OVERRIDES": (),
    "KOSTER_FILTER_LINKS": False,
    "KOSTER_DRY_RUN": False,
    "KOSTER_PAGE_DIRECTIVES": ("meta", "header"),
    "KOSTER_USAGE_PURPOSES": (),
    "KOSTER_USAGE_ACTION": "report",
    "KOSTER_USAGE_UNKNOWN": "keep",
    "KOSTER_USAGE_FIELD": None,
    "KOSTER_REPORT": None,
    "KOSTER_ARCHIVE": None,
    FALLBACK_SCHEDULER: "scrapy.core.scheduler.Scheduler",
}
"""Every setting with the prefix KOSTER_, with the value it has by itself."""

DAY_SECS = 86_400.0
"""RFC 9309, 2.4: "Crawlers SHOULD NOT use the cached version for more than 24 hours". Attach, 3.1,
for usage preferences: "crawlers can cache a robots.txt file for up to 24 hours"."""

_WRONG_CHARS = 500
_PARSER = ("from_crawler", "allowed")
_STORAGE = ("blocking", "from_settings", "get", "put", "sites", "forget", "close")


class PageSource(Enum):
    """Where a page may carry its directives (KOSTER_PAGE_DIRECTIVES)."""

    META = "meta"
    HEADER = "header"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the settings of a crawl say. See docs/settings.md."""

    robot: str | None
    """Begins with the name token (A10), or is several names with commas; None: each request's
    User-Agent header begins with it."""
    policy: Policy
    pace: Pace
    fallback_scheduler: type[BaseScheduler]
    parser: type[RobotParser]
    parser_is_chosen: bool
    """Whether the settings name it."""
    storage: type[Storage]
    storage_settings: BaseSettings = field(repr=False, compare=False)
    """The settings as the storage gets them; a password may be in it."""
    sqlite_path: str
    memory_sites: int
    idle_limit_secs: float
    timeout_secs: float
    max_bytes: int
    redirect_max: int
    page_meta: tuple[str, ...]
    filter_links: bool
    dry_run: bool
    page_directives: frozenset[PageSource]
    usage: UsageChoice
    report: str | None
    """The path of the page of the report, None where there is to be none."""
    archive: str | None
    """The folder of the archive, None if there is to be none."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Config:
        """Read the settings of *crawler* and the name token of its spider.

        Raises ValueError for an invalid one: it names the setting and shows a right value.
        """
        settings = crawler.settings
        read = SettingReader(settings, DEFAULTS)
        storage: type[Storage] = read.cls("KOSTER_STORAGE", has=_STORAGE)
        declared = {**STORAGE_SETTINGS, **_declared(storage)}
        _check_names(settings, {*DEFAULTS, *declared})
        for_storage = _for_storage(settings, declared)
        # Scrapy builds the scheduler so late that an error of it would not be shown.
        scheduler = read.cls(
            FALLBACK_SCHEDULER,
            has=SCHEDULER_METHODS,
            is_not="scrapy_koster.crawl.components.scheduler",
        )
        parser = read.cls("KOSTER_PARSER", has=_PARSER)
        usage, policy = _usage(read), _policy(read)
        by_rfc9309 = issubclass(parser, (Rfc9309RobotParser, StrictestRobotParser))
        if usage.purposes or (by_rfc9309 and not read.is_set("KOSTER_EXPIRY_SECS")):
            policy = _expiring_within_a_day(policy)
        return cls(
            fallback_scheduler=scheduler,
            robot=_robot(crawler, parser),
            policy=policy,
            usage=usage,
            pace=_pace(read),
            parser=parser,
            parser_is_chosen=read.is_set("KOSTER_PARSER"),
            storage=storage,
            storage_settings=for_storage,
            sqlite_path=for_storage["KOSTER_SQLITE_PATH"],
            memory_sites=for_storage["KOSTER_MEMORY_SITES"],
            idle_limit_secs=read.secs("KOSTER_IDLE_LIMIT_SECS"),
            timeout_secs=read.secs("KOSTER_TIMEOUT_SECS", above=0),
            max_bytes=read.whole("KOSTER_MAX_BYTES", least=1),
            redirect_max=read.whole("KOSTER_REDIRECT_MAX", least=0),
            page_meta=read.keys("KOSTER_PAGE_META"),
            filter_links=read.flag("KOSTER_FILTER_LINKS"),
            dry_run=read.flag("KOSTER_DRY_RUN"),
            page_directives=frozenset(read.members("KOSTER_PAGE_DIRECTIVES", PageSource)),
            report=read.path_or_none("KOSTER_REPORT"),
            archive=read.folder_or_none("KOSTER_ARCHIVE"),
        )

    def open_storage(self, robot: str) -> Storage:
        """Open the storage with the copies of *robot*; it may take its time if it is ``blocking``.

        Sites may send each robot a file of its own, so each has its own copies.
        """
        settings = BaseSettings(self.storage_settings)
        settings.set("ROBOTSTXT_USER_AGENT", robot, settings.maxpriority())
        return self.storage.from_settings(settings)


def _pace(read: SettingReader) -> Pace:
    return Pace(
        choice=read.member("KOSTER_CRAWL_DELAY", CrawlDelay),
        max_secs=read.secs("KOSTER_CRAWL_DELAY_MAX_SECS", above=0),
    )


def config_of(crawler: Crawler) -> Config:
    """Return the settings of *crawler*, which are read once; ValueError if one is wrong."""
    return belonging(crawler, Config, lambda: Config.from_crawler(crawler))


def checked_robot(robot: Any, where: str) -> str | None:
    """Return *robot*, a name token or a User-Agent header, which begins with one (A10).

    Several names, in a list or with commas between them, are returned with commas. None where it
    is None or empty, which Scrapy takes for nothing said. Raises ValueError, with *where* it stands
    and a right one, where it names no robot.
    """
    if not robot:
        return None
    if isinstance(robot, bytes):
        robot = robot.decode("latin-1")
    try:
        robot = joined(robot)
    except ValueError as error:
        raise ValueError(
            f"Invalid {where}: {error}. Use words without spaces, slashes or versions. For example:"
            f' {where} = ["figtree-images", "figtree"].'
        ) from None
    if isinstance(robot, str) and name_token(robot):
        return robot
    raise ValueError(
        f"Invalid {where}: {printable(repr(robot))} does not begin with a name token, which"
        " is one word without spaces, slashes or a version (section 3.2.1). For example:"
        f' {where} = "figtree".'
    )


def check_several(robot: str | None, parser: type[RobotParser], where: str) -> None:
    """Raise ValueError if *robot* has several names, and *parser* does not know records by name."""
    if robot and len(names_of(robot)) > 1 and not issubclass(parser, Decider):
        raise ValueError(
            f"Invalid {where}: KOSTER_PARSER = {parser.__name__} cannot tell which of the names"
            f" {printable(robot)} has a record. Use one name, or a parser of scrapy-koster, for"
            ' example KOSTER_PARSER = "scrapy_koster.Rfc9309RobotParser".'
        )


def _robot(crawler: Crawler, parser: type[RobotParser]) -> str | None:
    of_spider = getattr(crawler.spider, "robotstxt_user_agent", None)
    of_project = crawler.settings.get("ROBOTSTXT_USER_AGENT")
    for said, where in (
        (of_spider, "robotstxt_user_agent"),
        (of_project, "ROBOTSTXT_USER_AGENT"),
    ):
        if robot := checked_robot(said, where):
            check_several(robot, parser, where)
            return robot
    return None


def _below_data_dir(path: str) -> str:
    """Return where data_path of Scrapy puts *path*, and raise nothing.

    It raises NotConfigured where there are settings of a project, but no
    scrapy.cfg at or above the working folder (scrapyd, scripts): that is
    taken as outside of a project. A folder that it could not make is one that
    the storage cannot make either, and says so when it is opened.
    """
    try:
        return data_path(path)
    except NotConfigured:
        return str(Path(".scrapy", path))
    except OSError as error:
        return str(Path(error.filename or ".scrapy", path))


def _policy(read: SettingReader) -> Policy:
    policy = Policy(
        expiry_secs=read.secs("KOSTER_EXPIRY_SECS"),
        expiry_min_secs=read.secs("KOSTER_EXPIRY_MIN_SECS"),
        expiry_max_secs=read.secs("KOSTER_EXPIRY_MAX_SECS"),
        restricted_expiry_secs=read.secs("KOSTER_RESTRICTED_EXPIRY_SECS"),
        stale_if_error_secs=read.secs("KOSTER_STALE_IF_ERROR_SECS"),
        defer_first_secs=read.secs("KOSTER_DEFER_FIRST_SECS", above=0),
        defer_max_secs=read.secs("KOSTER_DEFER_MAX_SECS", above=0),
        defer_limit_secs=read.secs("KOSTER_DEFER_LIMIT_SECS"),
        restricted=read.member("KOSTER_RESTRICTED", Restricted),
        missing=read.member("KOSTER_MISSING", Missing),
        html=read.member("KOSTER_HTML_ROBOTSTXT", Html),
        unavailable=read.member("KOSTER_UNAVAILABLE", Unavailable),
        overrides=read.overrides("KOSTER_OVERRIDES"),
    )
    for low, high in (
        ("KOSTER_EXPIRY_MIN_SECS", "KOSTER_EXPIRY_MAX_SECS"),
        ("KOSTER_DEFER_FIRST_SECS", "KOSTER_DEFER_MAX_SECS"),
    ):
        if read.secs(low) > read.secs(high):
            raise ValueError(
                f"Invalid {low}: {read.shown(low)} is more than {high} = {read.shown(high)}."
                " Lower the first or raise the second."
            )
    return policy


def _usage(read: SettingReader) -> UsageChoice:
    return UsageChoice(
        purposes=read.labels("KOSTER_USAGE_PURPOSES"),
        action=read.member("KOSTER_USAGE_ACTION", UsageAction),
        unknown=read.member("KOSTER_USAGE_UNKNOWN", UsageUnknown),
        field=read.name_or_none("KOSTER_USAGE_FIELD"),
    )


def _expiring_within_a_day(policy: Policy) -> Policy:
    """Return *policy* with lives of copies of at most 24 hours."""
    return replace(
        policy,
        expiry_secs=min(policy.expiry_secs, DAY_SECS),
        expiry_min_secs=min(policy.expiry_min_secs, DAY_SECS),
        expiry_max_secs=min(policy.expiry_max_secs, DAY_SECS),
        restricted_expiry_secs=min(policy.restricted_expiry_secs, DAY_SECS),
    )


def _declared(storage: type[Storage]) -> Mapping[str, Setting]:
    """Return the settings that *storage* declares."""
    declared = getattr(storage, "SETTINGS", {})
    if isinstance(declared, Mapping) and all(isinstance(s, Setting) for s in declared.values()):
        return declared
    raise ValueError(
        f"Invalid KOSTER_STORAGE: SETTINGS of {storage.__name__} is not a mapping of names to"
        " scrapy_koster.storage.Setting. See docs/storage.md."
    )


def _for_storage(settings: BaseSettings, declared: Mapping[str, Setting]) -> BaseSettings:
    """Return *settings* with a valid value for each setting that is *declared*."""
    copy = BaseSettings(settings)
    for name, setting in declared.items():
        copy.set(name, _valid(name, setting, settings.get(name)), settings.maxpriority())
    copy.freeze()
    return copy


def _valid(name: str, setting: Setting, value: Any) -> Any:
    # No message and no traceback shows the value itself: it may be a password.
    try:
        read = setting.read(setting.default if value is None else value)
    except (TypeError, ValueError, OverflowError) as error:
        wrong = printable(str(error), _WRONG_CHARS)
    else:
        return _below_data_dir(read) if setting.in_data_dir else read
    raise ValueError(f"Invalid {name}: {wrong}. For example: {name} = {setting.default!r}.")


def _check_names(settings: BaseSettings, known: Collection[str]) -> None:
    for name in settings:
        if str(name).startswith("KOSTER_") and name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.7)
            hint = f"Did you mean {near[0]}?" if near else "Remove it."
            if name == "KOSTER_ENABLED":
                hint = "Use ROBOTSTXT_OBEY to enable or disable scrapy-koster."
            raise ValueError(f"Unknown setting {printable(str(name))}. {hint}")
