"""The settings of a crawl, read once into a frozen ``Config``."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.robotstxt import RobotParser
from scrapy.settings import BaseSettings
from scrapy.utils.project import data_path

from scrapy_koster.crawl import setting_kinds as kinds
from scrapy_koster.crawl.engine.private import per_crawler
from scrapy_koster.parsers import Rfc9309RobotParser, StrictestRobotParser
from scrapy_koster.protocol.delay import CrawlDelay, Pace
from scrapy_koster.protocol.nametoken import joined, name_token, names_of
from scrapy_koster.protocol.policy import Html, Missing, Policy, Restricted, Unavailable
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.reading import Reading
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.usage import UsageAction, UsageChoice, UsageUnknown
from scrapy_koster.storage.memory import MemoryStorage
from scrapy_koster.storage.port import Setting, Storage
from scrapy_koster.storage.redis_settings import REDIS_SETTINGS
from scrapy_koster.storage.sqlite import SQLiteStorage

# The settings.

FALLBACK_SCHEDULER = "KOSTER_FALLBACK_SCHEDULER"

STORAGE_SETTINGS = {**MemoryStorage.SETTINGS, **SQLiteStorage.SETTINGS, **REDIS_SETTINGS}
"""The settings of our storages. They are valid in any crawl, even with another storage."""

_CONNECTION_KEYS = (
    *("proxy", "bindaddress", "impersonate", "impersonate_args"),
    *("http_user", "http_pass", "http_auth_domain"),
)
_LABEL = r"[a-z*][a-z0-9_.*-]{0,63}"  # RFC 9651, 3.1.2: a key
_STORAGE = ("blocking", "from_settings", "get", "put", "sites", "robots", "forget", "close")
_SCHEDULER = ("has_pending_requests", "enqueue_request", "next_request")

SETTINGS: Mapping[str, Setting] = {
    "KOSTER_PARSER": kinds.class_with("scrapy_koster.KosterRobotParser", "from_crawler", "allowed"),
    "KOSTER_STORAGE": kinds.class_with("scrapy_koster.storage.sqlite.SQLiteStorage", *_STORAGE),
    **STORAGE_SETTINGS,
    "KOSTER_EXPIRY_SECS": kinds.secs(604800),
    "KOSTER_EXPIRY_MIN_SECS": kinds.secs(300),
    "KOSTER_EXPIRY_MAX_SECS": kinds.secs(2592000),
    "KOSTER_RESTRICTED_EXPIRY_SECS": kinds.secs(3600),
    "KOSTER_STALE_IF_ERROR_SECS": kinds.secs(0),
    "KOSTER_TIMEOUT_SECS": kinds.secs(30, above=0),
    "KOSTER_CONCURRENT_FETCHES": kinds.whole_or_none(),
    "KOSTER_MAX_BYTES": Setting.whole(512000, least=1),
    "KOSTER_REDIRECT_MAX": Setting.whole(5, least=0),
    "KOSTER_PAGE_META": kinds.list_of("meta keys", ".+", _CONNECTION_KEYS),
    "KOSTER_DEFER_FIRST_SECS": kinds.secs(10, above=0),
    "KOSTER_DEFER_MAX_SECS": kinds.secs(600, above=0),
    "KOSTER_DEFER_LIMIT_SECS": kinds.secs(300),
    "KOSTER_IDLE_LIMIT_SECS": kinds.secs(30),
    "KOSTER_CRAWL_DELAY": kinds.one_of(CrawlDelay, "ignore"),
    "KOSTER_CRAWL_DELAY_MAX_SECS": kinds.secs(60, above=0),
    "KOSTER_RESTRICTED": kinds.one_of(Restricted, None),
    "KOSTER_MISSING": kinds.one_of(Missing, "allow"),
    "KOSTER_HTML_ROBOTSTXT": kinds.one_of(Html, "allow"),
    "KOSTER_UNAVAILABLE": kinds.one_of(Unavailable, "defer"),
    "KOSTER_OVERRIDES": Setting((), kinds.overrides),
    "KOSTER_FILTER_LINKS": kinds.flag(),
    "KOSTER_DRY_RUN": kinds.flag(),
    "KOSTER_PAGE_DIRECTIVES": kinds.list_of("'meta', 'header'", "meta|header", ("meta", "header")),
    "KOSTER_USAGE_PURPOSES": kinds.list_of("labels in lower case", _LABEL),
    "KOSTER_USAGE_ACTION": kinds.one_of(UsageAction, "report"),
    "KOSTER_USAGE_UNKNOWN": kinds.one_of(UsageUnknown, "keep"),
    "KOSTER_USAGE_FIELD": kinds.text_or_none("the name of a field", str.isidentifier),
    "KOSTER_REPORT": kinds.text_or_none("the path of a file"),
    "KOSTER_ARCHIVE": kinds.text_or_none(
        "the path of a folder", lambda path: not Path(path).is_file()
    ),
    FALLBACK_SCHEDULER: kinds.class_with(
        "scrapy.core.scheduler.Scheduler",
        *_SCHEDULER,
        is_not="scrapy_koster.crawl.components.scheduler",
    ),
}
"""The settings with the prefix KOSTER_. A ``Setting`` has the default, and reads a value."""

DEFAULTS: Mapping[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}

DAY_SECS = 86_400.0
"""RFC 9309, 2.4: "Crawlers SHOULD NOT use the cached version for more than 24 hours". Usage
(draft-ietf-aipref-attach, 3.1): "crawlers can cache a robots.txt file for up to 24 hours"."""

_LIVES = ("expiry_secs", "expiry_min_secs", "expiry_max_secs", "restricted_expiry_secs")
_WRONG_CHARS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of a crawl. See docs/settings.md."""

    robot: str | None
    """A text that begins with the robot's name token (A10), or several names with commas. If None,
    the User-Agent header of a request names the robot."""
    policy: Policy
    pace: Pace
    fallback_scheduler: type[BaseScheduler]
    parser: type[RobotParser]
    parser_is_chosen: bool
    """Whether KOSTER_PARSER is set."""
    storage: type[Storage]
    storage_settings: BaseSettings = field(repr=False, compare=False)
    """The settings for the storage. The values may contain a password."""
    sqlite_path: str
    memory_bytes: int
    concurrent_fetches: int | None
    idle_limit_secs: float
    timeout_secs: float
    max_bytes: int
    redirect_max: int
    page_meta: tuple[str, ...]
    filter_links: bool
    dry_run: bool
    page_directives: tuple[str, ...]
    usage: UsageChoice
    report: str | None
    """The path of the report's page, or None."""
    archive: str | None
    """The folder of the archive, or None."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Config:
        """Return the settings of *crawler*, including ``robotstxt_user_agent`` of its spider.

        Raises ValueError for an invalid or an unknown setting. The message has the name of the
        setting, and says how to fix the setting.
        """
        settings = crawler.settings
        storage = _valid("KOSTER_STORAGE", SETTINGS["KOSTER_STORAGE"], settings)
        known = {**SETTINGS, **getattr(storage, "SETTINGS", {})}
        _check_names(settings, known)
        read = {name: _valid(name, setting, settings) for name, setting in known.items()}
        for_storage = BaseSettings(settings)
        for_storage.setdict(read, settings.maxpriority())
        values = {name.removeprefix("KOSTER_").lower(): read[name] for name in SETTINGS}
        parser = values["parser"]
        by_rfc9309 = issubclass(parser, (Rfc9309RobotParser, StrictestRobotParser))
        # RFC 9309, 2.3.1.3: after 400 to 499, "the crawler MAY access any resources on the server".
        # Our other readings, and other parsers, follow the draft (3.1).
        opens = issubclass(parser, Rfc9309RobotParser)
        values["restricted"] = values["restricted"] or Restricted("allow" if opens else "disallow")
        # With KOSTER_USAGE_PURPOSES, a copy lives for a day at most (DAY_SECS). With a parser that
        # reads by RFC 9309, the same limit applies, unless you set KOSTER_EXPIRY_SECS.
        if values["usage_purposes"] or (by_rfc9309 and settings.get("KOSTER_EXPIRY_SECS") is None):
            values |= {name: min(values[name], DAY_SECS) for name in _LIVES}
        of_spider = getattr(crawler.spider, "robotstxt_user_agent", None)
        where = "robotstxt_user_agent" if of_spider else "ROBOTSTXT_USER_AGENT"
        return cls(
            robot=checked_robot(of_spider or settings.get(where), where, parser),
            policy=Policy(
                html=values["html_robotstxt"],
                standard=Standard.RFC_9309 if opens else Standard.DRAFT,
                reads_hidden=issubclass(parser, StrictestRobotParser),
                **_those_of(Policy, values),
            ),
            pace=Pace(choice=values["crawl_delay"], max_secs=values["crawl_delay_max_secs"]),
            usage=UsageChoice(**_those_of(UsageChoice, values, "usage_")),
            parser_is_chosen=settings.get("KOSTER_PARSER") is not None,
            storage_settings=for_storage,
            **_those_of(cls, values),
        )

    def open_storage(self, robot: str) -> Storage:
        """Return an open storage for the copies of *robot*.

        If the storage is ``blocking``, this call may block. A site may send different files to
        different robots, so each robot has its own copies.
        """
        settings = BaseSettings(self.storage_settings)
        settings.set("ROBOTSTXT_USER_AGENT", robot, settings.maxpriority())
        return self.storage.from_settings(settings)


def _those_of(kind: Any, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the *values* for the fields of the data class *kind*, by the name of the field.

    In *values*, the key is *prefix* followed by the name. Fields without a value are left out.
    """
    named = {each.name: f"{prefix}{each.name}" for each in fields(kind)}
    return {field: values[name] for field, name in named.items() if name in values}


def config_of(crawler: Crawler) -> Config:
    """Return the settings of *crawler*, read once. Raises ValueError if a setting is invalid."""
    return per_crawler(crawler, Config, lambda: Config.from_crawler(crawler))


def checked_robot(robot: Any, where: str, parser: type = Reading) -> str | None:
    """Return the valid name *robot* as a text, or None for an empty value.

    *robot* is a name token, a User-Agent header that begins with a name token (A10), or several
    names in a list or with commas. A list is returned as a text with commas. Raises ValueError if a
    name is invalid, or if *robot* has several names and *parser* cannot select a record for several
    names. The message names the setting *where*.
    """
    if not robot:
        return None
    try:
        robot = joined(robot.decode("latin-1") if isinstance(robot, bytes) else robot)
    except ValueError as error:
        wrong = f"{error}. Use words without spaces, slashes or versions"
    else:
        if not isinstance(robot, str) or not name_token(robot):
            wrong = (
                f"{printable(repr(robot))} does not begin with a name token, which is one word"
                " without spaces, slashes or a version (section 3.2.1)"
            )
        elif len(names_of(robot)) > 1 and not issubclass(parser, Reading):
            wrong = (
                f"KOSTER_PARSER = {parser.__name__} cannot tell which of the names"
                f" {printable(robot)} has a record. Use one name, or a parser of scrapy-koster"
            )
        else:
            return robot
    raise ValueError(f'Invalid {where}: {wrong}. For example: {where} = "figtree" or "a,b".')


def _below_data_dir(path: str) -> str:
    """Return *path* below the data folder of the project. An absolute *path* is not changed.

    Scrapy's data_path raises NotConfigured if a project has settings, but no scrapy.cfg at or above
    the working folder (scrapyd, scripts). In this case the data folder is ``.scrapy``, as outside
    of a project. If the folder cannot be created, opening the storage reports the error.
    """
    try:
        return data_path(path)
    except (NotConfigured, OSError) as error:
        return str(Path(getattr(error, "filename", None) or ".scrapy", path))


def _valid(name: str, setting: Setting, settings: BaseSettings) -> Any:
    """Return the value of the setting *name*. Raises ValueError if the value is invalid."""
    value = settings.get(name)
    # ValueError is raised after the except block. So its traceback does not show the error of
    # ``read``, which may quote a password.
    try:
        valid = setting.read(setting.default if value is None else value)
    except Exception as error:  # noqa: BLE001  # a storage may declare its own ``read``
        wrong = printable(str(error), _WRONG_CHARS)
    else:
        return _below_data_dir(valid) if setting.in_data_dir else valid
    if setting.wanted:
        wrong = f"{printable(repr(value))} is not {setting.wanted}"
    example = f"For example: {name} = {setting.default!r}."
    if setting.default in (None, ()):
        example = "See docs/settings.md."
    raise ValueError(f"Invalid {name}: {wrong}. {example}")


def _check_names(settings: BaseSettings, known: Collection[str]) -> None:
    for name in settings:
        if str(name).startswith("KOSTER_") and name not in known:
            near = difflib.get_close_matches(name, known, 1, cutoff=0.7)
            hint = f"Did you mean {near[0]}?" if near else "Remove it."
            if name == "KOSTER_ENABLED":
                hint = "Use ROBOTSTXT_OBEY to enable or disable scrapy-koster."
            raise ValueError(f"Unknown setting {printable(str(name))}. {hint}")
