"""The first and the last messages of a crawl: the settings in force, and the results."""

import errno
import os
from collections import Counter
from enum import Enum
from importlib.metadata import version
from pathlib import Path

from scrapy.crawler import Crawler

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.hazard import Cause
from scrapy_koster.protocol.nametoken import names_of
from scrapy_koster.protocol.policy import Restricted
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import SiteStatus
from scrapy_koster.protocol.verdict import Verdict
from scrapy_koster.storage.sqlite import SQLiteStorage

_URL_CHARS = 300
_SITES_NAMED = 10
_CLOSED = (SiteStatus.RESTRICTED, SiteStatus.UNAVAILABLE)
_DELAYS = {"ignore": "ignored", "obey": "obeyed", "refuse": "obeyed, long delays refused"}
_RESTRICTED = {Restricted.ALLOW: "open", Restricted.DISALLOW: "close"}
_OPEN_FILES = os.strerror(errno.EMFILE)
_OUT_OF_FILES = (
    ". This process has reached its limit of open files: raise the limit (ulimit -n), and run the"
    " crawl again"
)
_MANY_SITES = 6
_OFFLINE = (
    ". No robots.txt could be fetched in this crawl: check your network and your proxy, and run"
    " the crawl again"
)
_WHICH = (
    '. Which were refused, and by which line: LOG_LEVEL = "DEBUG", or scrapy robots explain URL'
)


class Retrieval(Enum):
    """The way in which a copy was retrieved."""

    FETCHED = "fetched"
    FROM_STORAGE = "from storage"
    REVALIDATED = "revalidated"


class Summary:
    """Counts sites, copies and hazards, and logs the totals with some stats of the crawl."""

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._config = config
        self._log = Log(__name__, crawler)
        self._sites: Counter[SiteStatus] = Counter()
        self._closed: dict[SiteStatus, dict[Site, None]] = {status: {} for status in _CLOSED}
        """Up to ten closed sites of a status, by status."""
        self.copies: Counter[Retrieval] = Counter()
        self._hazards: Counter[Cause] = Counter()
        self._examples: dict[Cause, str] = {}
        self._stricter: Verdict | None = None
        self._own_fault = ""

    def begin(self, robot: str) -> None:
        """Log the settings in force: *robot*, parser, storage, Crawl-delay, dry run."""
        config = self._config
        unset = "" if config.parser_is_chosen else " (the 1996 draft: KOSTER_PARSER is not set)"
        self._log.info(
            "scrapy-koster %(version)s: robot %(robot)s, %(parser)s%(unset)s, HTTP 401 and 403"
            " %(restricted)s a site, copies in %(copies)s, Crawl-delay %(delay)s%(dry_run)s",
            version=version("scrapy-koster"),
            robot=", ".join(filter(None, names_of(robot))) or "without a name",
            parser=config.parser.__name__,
            unset=unset,
            restricted=_RESTRICTED[config.policy.restricted],
            copies=_place_of(config),
            delay=_DELAYS[config.pace.choice.value],
            dry_run=", dry run: no request is refused" if config.dry_run else "",
        )

    def stands(self, site: Site, now: SiteStatus, before: SiteStatus | None) -> None:
        """Count *site* with its new status *now*, and no longer with its old status *before*."""
        if before is not None:
            self._sites[before] -= 1
            self._closed.get(before, {}).pop(site, None)
        self._sites[now] += 1
        if len(named := self._closed.get(now, {})) < _SITES_NAMED:
            named[site] = None

    def failed(self, reason: str) -> None:
        """Keep the *reason* of a failure if the crawl has caused the failure."""
        if _OPEN_FILES in reason:
            self._own_fault = reason

    def advice(self, reason: str) -> str:
        """Return what to do about a failure, if the crawl or its network causes it, or ""."""
        if _OPEN_FILES in reason:
            return _OUT_OF_FILES
        failed = self._sites[SiteStatus.UNAVAILABLE]
        is_offline = _MANY_SITES <= failed == self._sites.total() and not self.copies
        return _OFFLINE if is_offline else ""

    def hazard_met(self, url: str, cause: Cause, because: str) -> None:
        """Count a page with a hazard. Keep the first page of a *cause* as the example to log."""
        self._hazards[cause] += 1
        self._examples.setdefault(cause, f"{printable(url, _URL_CHARS)} is {because}")

    def stricter_met(self, verdict: Verdict) -> None:
        """Keep the first *verdict* that forbids a page which RFC 9309 allows, to log it."""
        self._stricter = self._stricter or verdict

    def write(self) -> None:
        """Log the hazards, the closed sites, and the numbers of sites, requests and copies."""
        is_survey = getattr(self._crawler.spider, "is_survey", False)
        dry_run, stats = self._config.dry_run, self._crawler.stats
        self._write_hazards("Allowed" if is_survey else "Fetched")
        if self._stricter is not None:
            verb = "Would refuse" if dry_run or is_survey else "Refused"
            self._log.info(
                "%(pages)s that RFC 9309 allows. For example %(url)s is %(verdict)s. Set"
                ' KOSTER_PARSER = "scrapy_koster.Rfc9309RobotParser" to fetch them',
                pages=_pages(verb, stats.get_value("koster/stricter/urls")),
                url=printable(self._stricter.url, _URL_CHARS),
                verdict=self._stricter,
            )
        closed = [self._listed(status) for status in self._closed if self._sites[status]]
        if closed and not is_survey:
            self._log.warning(
                "Closed sites at the end: %(kinds)s. KOSTER_REPORT lists all of them%(hint)s",
                kinds=", ".join(closed),
                hint=self.advice(self._own_fault),
            )
        stat = "koster/dry_run/forbidden" if dry_run else "robotstxt/forbidden"
        refused, parked = stats.get_value(stat, 0), stats.get_value("koster/parked", 0)
        is_told = self._crawler.settings["LOG_LEVEL"] in {"DEBUG", 10}
        sites = [f"{self._sites[each]} {each.words}" for each in SiteStatus if self._sites[each]]
        self._log.info(
            "Sites: %(sites)s. Requests %(fate)s: %(refused)d%(waiting)s. Copies of robots.txt:"
            " %(fetched)d fetched, %(from storage)d from storage, %(revalidated)d confirmed"
            " unchanged%(hint)s",
            sites=", ".join(sites) or "none",
            fate="that would be refused (KOSTER_DRY_RUN)" if dry_run else "refused",
            refused=refused,
            waiting=f", still waiting: {parked}" if parked else "",
            hint=_WHICH if refused and not is_told else "",
            **{learnt.value: self.copies[learnt] for learnt in Retrieval},
        )

    def _listed(self, status: SiteStatus) -> str:
        """Return a text with the number of sites with this status, and with up to ten of them."""
        count, named = self._sites[status], sorted(map(str, self._closed[status]))
        more = ["..."] if count > len(named) else []
        return f"{count} {status.words} ({', '.join([*named, *more])})"

    def _write_hazards(self, verb: str) -> None:
        if hidden := self._hazards.pop(Cause.HIDDEN, 0):
            self._log.warning(
                "%(pages)s that rules disallow which neither standard reads, because markup"
                " or unusual space hides them. For example %(example)s. Set KOSTER_PARSER ="
                ' "scrapy_koster.StrictestRobotParser" to refuse them',
                pages=_pages(verb, hidden),
                example=self._examples[Cause.HIDDEN],
            )
        for cause, _ in self._hazards.most_common(1):
            values = {
                "pages": _pages(verb, self._hazards.total()),
                "causes": ", ".join(f"{each.value} {n}" for each, n in self._hazards.most_common()),
                "example": self._examples[cause],
            }
            if self._config.parser_is_chosen:
                self._log.info(
                    "%(pages)s that RFC 9309 disallows (%(causes)s). For example"
                    ' %(example)s. Set KOSTER_PARSER = "scrapy_koster.StrictestRobotParser" to'
                    " refuse them",
                    **values,
                )
            else:
                self._log.warning(
                    "%(pages)s that RFC 9309, today's standard, disallows (%(causes)s). For"
                    ' example %(example)s. Set KOSTER_PARSER = "scrapy_koster.Rfc9309RobotParser"'
                    ' to refuse them, or to "scrapy_koster.KosterRobotParser" to obey the draft'
                    " without this warning",
                    **values,
                )


def _pages(verb: str, count: int) -> str:
    return f"{verb} 1 page" if count == 1 else f"{verb} {count} pages"


def _place_of(config: Config) -> str:
    """Return the place of the copies: the path of the SQLite file, or the name of the storage."""
    if not issubclass(config.storage, SQLiteStorage):
        return config.storage.__name__
    path, here = Path(config.sqlite_path), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
