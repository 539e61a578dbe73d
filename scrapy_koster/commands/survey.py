"""``scrapy robots survey``: the URLs of a list that would be refused."""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Any

from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest, UsageError
from scrapy.http import Response
from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object
from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from scrapy_koster.commands.explain import outcome_of
from scrapy_koster.commands.lookup import QUIET
from scrapy_koster.commands.output import Line, counted, opened, progress_of, table
from scrapy_koster.commands.seeds import Seeds
from scrapy_koster.commands.subcommand import (
    AGENT,
    FAILED,
    JSON,
    NOT_RETRIEVED,
    PAGE,
    Run,
    Subcommand,
    argument,
    robot_in,
)
from scrapy_koster.crawl.clock import clock_of
from scrapy_koster.crawl.components.downloadermiddleware import KosterMiddleware
from scrapy_koster.crawl.engine.private import is_for_robots_txt
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.verdict import Verdict
from scrapy_koster.report.database import DatabaseError
from scrapy_koster.report.extension import RobotsReport, folder_of, write_report
from scrapy_koster.report.numbers import read
from scrapy_koster.writing import whole

_REFUSED = 1
_SHOWN = 10
_LINES = (("repeated", "duplicate"), ("broken", "invalid"), ("skipped", "blank or comment"))
"""Keys of ``Seeds.counts``, with the words for the first line of the answer."""

# More than the number of robots.txt files that are fetched at once (``socket_limit``), so that the
# next fetch can always begin.
URLS_AT_ONCE = 2000
_IDLE_POLL_SECS = 0.05
_SCHEDULER = "scrapy.core.scheduler.Scheduler"

SURVEY_SETTINGS: dict[str, Any] = {
    "ROBOTSTXT_OBEY": True,
    "KOSTER_DRY_RUN": False,
    "KOSTER_CRAWL_DELAY": "ignore",  # no page is visited
    # No retry: a hanging site takes KOSTER_TIMEOUT_SECS.
    "KOSTER_DEFER_LIMIT_SECS": 0,
    # The survey decides on the given URLs, and does not use the queue and the cache of a project.
    "SPIDER_MIDDLEWARES": {},
    "URLLENGTH_LIMIT": 0,
    "SCHEDULER": _SCHEDULER,
    "KOSTER_FALLBACK_SCHEDULER": _SCHEDULER,
    "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter",
    "HTTPCACHE_ENABLED": False,
    "CLOSESPIDER_TIMEOUT_NO_ITEM": 0,
    "CONCURRENT_ITEMS": 1,  # Scrapy starts this number of tasks for each response
}
"""Settings of a survey, used instead of the settings of a project."""


class Survey(Subcommand):
    """Show which URLs of a list would be refused.

    No page is fetched. Each robots.txt is fetched once, with the settings of your crawl, and
    stored. After a stop, the same command continues the survey.
    """

    example = "scrapy robots survey urls.txt -o survey.html --verdicts verdicts.csv"
    answers = "0 all URLs are allowed, 1 some would be refused"
    extra = "tools"
    arguments = (
        argument("file", metavar="FILE|-", help="URLs or hosts, one a line, also as gz, bz2 or xz"),
        AGENT,
        PAGE,
        argument("--verdicts", metavar="FILE", help="write the verdicts, as CSV"),
        JSON,
    )

    def run(self, run: Run) -> Iterator[Line]:
        """Yield the counts of the sites and of the URLs."""
        with closing(Seeds()) as seeds:
            _read(run, seeds)
            yield from _surveyed(run, seeds)


def _read(run: Run, seeds: Seeds) -> None:
    """Read the list, and report invalid lines."""
    name = run.opts.file
    with opened(name) as file:
        for number, why in enumerate(seeds.read(file)):
            if number < _SHOWN:
                run.warn(f"{name}: {why}")
    if seeds.counts["broken"] > _SHOWN:
        run.warn(f"{name}: {seeds.counts['broken']} invalid lines in total")
    if seeds.hosts:
        run.warn(f"{name}: {counted(seeds.hosts, 'line')} without a scheme; https is assumed")
    if not len(seeds):
        raise UsageError(f"{name!r} has no URL; write one URL or host a line")


def _surveyed(run: Run, seeds: Seeds) -> Iterator[Line]:
    project = replace(run, settings=run.settings.copy())
    project.warn_if_not_obeyed()
    robot = copies_of(project.crawler, project.config)  # not the robot in --agent
    _set(run)
    worded = f"{{decided}} of {len(seeds)} URLs, {{sites}} sites; {{refused}} refused".format
    with _verdict_file(run.opts.verdicts) as verdicts:
        crawler = run.crawl(
            SurveySpider,
            seeds=seeds,
            progress=progress_of(worded),
            verdicts=verdicts,
            robot_of_copies=robot,
        )
    spider = crawler.spider
    if not isinstance(spider, SurveySpider) or not spider.began:
        run.warn("the survey could not start", FAILED)
        return
    report = crawler.get_extension(RobotsReport)
    assert report is not None  # enabled by SurveyAddon
    try:
        numbers = read(report.database)
        _judge(run, numbers, spider, len(seeds))
        given = {**seeds.counts, "urls": len(seeds), "decided": spider.decided}
        yield from run.answer({"given": given, **numbers}, _as_text(given, numbers))
        if run.opts.output is not None:
            write_report(run.config, report.database, run.opts.output)
    except DatabaseError as error:
        run.warn(str(error), FAILED)


@contextmanager
def _verdict_file(name: str | None) -> Iterator[Callable[..., object]]:
    """Yield a function that adds a row to the CSV file *name*. Without a name, it has no effect.

    The file is written whole or not at all.
    """
    if name is None:
        yield lambda *_: None
        return
    with whole(name) as path, path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("url", "verdict", "line", "because"))
        yield lambda url, outcome: writer.writerow((url, *_cells(outcome)))


def _cells(outcome: Verdict | str | None) -> tuple[str, int | str | None, str]:
    if outcome is None:
        return "allowed", "", ""
    if isinstance(outcome, str):
        return "not decided", "", printable(outcome)
    return outcome_of(outcome), outcome.line, outcome.because()


def _set(run: Run) -> None:
    """Check and apply the settings of a survey."""
    ours = {**QUIET, **SURVEY_SETTINGS, "ADDONS": survey_addons(run.settings)}
    if run.opts.agent is not None:
        ours["ROBOTSTXT_USER_AGENT"] = robot_in(run.opts.agent)
    run.settings.setdict(ours, priority="cmdline")
    run.try_output(run.opts.output)
    run.try_output(run.opts.verdicts)
    folder = folder_of(run.config)  # run.config reports an invalid setting
    folder.mkdir(parents=True, exist_ok=True)
    run.try_output(str(folder / "survey"))


def _judge(run: Run, numbers: dict[str, Any], spider: SurveySpider, urls: int) -> None:
    refused = numbers["requests"]["refused"]
    run.worse(_REFUSED if any(refused.values()) else 0)
    run.worse(NOT_RETRIEVED if refused["unavailable"] else 0)
    for why, count in spider.undecided.items():
        run.warn(f"{counted(count, 'URL')} not decided: {printable(why)}", NOT_RETRIEVED)
    if left := urls - spider.decided - spider.undecided.total():
        message = f"stopped before {left} of {urls} URLs were decided; run it again to continue"
        run.warn(message, NOT_RETRIEVED)


def _as_text(given: dict[str, int], numbers: dict[str, Any]) -> Iterator[Line]:
    """Yield tables for people."""
    others = "".join(f", {given[key]:,} {what}" for key, what in _LINES if given[key])
    yield f"{counted(given['lines'], 'line')}: {counted(given['urls'], 'URL')}{others}"
    requests = numbers["requests"]
    refused = {f"would be refused: {why}": count for why, count in requests["refused"].items()}
    urls = {"would be fetched": requests["allowed"], **refused}
    urls["of the refused, allowed by RFC 9309"] = numbers["totals"]["stricter"]
    urls["not decided"] = given["urls"] - given["decided"]
    usage = {
        f"{label}={preference}": count
        for label, counts in numbers["usage"].items()
        for preference, count in counts.items()
    }
    for heads, counts in (
        (("SITES", ""), numbers["outcomes"]),
        (("URLS", ""), urls),
        (("SITES", "USAGE"), usage),
    ):
        if rows := [(count, what) for what, count in counts.items() if count]:
            yield ""
            yield from table(heads, rows)
    if rules := numbers["rules"][:_SHOWN]:
        yield ""
        cells = [(row["refused"], row["site"], row["line"] or "", row["text"]) for row in rules]
        yield from table(("REFUSED", "SITE", "LINE", ""), cells)


# The crawl.


class SurveyAddon:
    """Enables RobotsReport, and SurveyMiddleware directly after KosterMiddleware.

    This add-on must be the last, because other add-ons may add KosterMiddleware.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Enable the components. Raises ValueError if KosterMiddleware is not enabled."""
        name = "DOWNLOADER_MIDDLEWARES"
        orders = {load_object(path): order for path, order in settings.getwithbase(name).items()}
        places = [
            place
            for component, place in orders.items()
            if place is not None and issubclass(component, KosterMiddleware)
        ]
        if not places:
            raise ValueError("a survey needs a KosterMiddleware in DOWNLOADER_MIDDLEWARES")
        place: Any = math.nextafter(max(places), math.inf)
        settings.setdefault_in_component_priority_dict(name, SurveyMiddleware, place)
        settings.set_in_component_priority_dict("EXTENSIONS", RobotsReport, 100)


def survey_addons(settings: BaseSettings) -> dict[Any, Any]:
    """Return the ADDONS of *settings*, with scrapy-koster and SurveyAddon."""
    addons = settings.getdict("ADDONS").items()
    given = {load_object(path): place for path, place in addons if place is not None}
    return {load_object("scrapy_koster.Addon"): 500, **given, SurveyAddon: math.inf}


class PageNotFetched(IgnoreRequest):
    """The page is allowed, but not fetched in a survey."""


class SurveyMiddleware:
    """Ends requests for pages; only requests for a robots.txt are sent."""

    def process_request(self, request: Request) -> None:
        """Raise PageNotFetched for a page."""
        if not is_for_robots_txt(request):
            raise PageNotFetched(request.url)


class SurveySpider(Spider):
    """Spider that requests the URLs of *seeds*, so that KosterMiddleware decides on each URL.

    The other URLs of a site are requested after the decision on its first URL. So a hanging site
    with many URLs does not delay the other sites.
    """

    name = "survey"
    is_survey = True
    """A survey has a report without KOSTER_REPORT, and its log does not list closed sites."""
    seeds: Seeds
    progress: Callable[..., object]
    """Called with three numbers: ``decided`` URLs, ``refused`` URLs, ``sites``."""
    verdicts: Callable[[str, Verdict | str | None], object]
    """Called with a URL and its outcome.

    This is a ``Verdict`` if the URL is refused, None if allowed, or the reason if undecided.
    """

    def __init__(self, **arguments: Any) -> None:
        """Set *arguments* as attributes, for example ``seeds`` and ``verdicts``."""
        super().__init__(**arguments)
        self.report_title = f"Survey of {len(self.seeds)} URLs"
        self.began = False
        self.decided = 0
        """Number of decided URLs."""
        self.undecided: Counter[str] = Counter()
        """Numbers of URLs without a decision, by reason."""
        self._sites = self._refused = self._under_way = 0
        self._settled: list[tuple[int, str]] = []
        """Sites whose other URLs can be requested now: the number and the first URL."""

    async def start(self) -> AsyncIterator[Request]:
        """Yield the requests. URLS_AT_ONCE requests at most are under way, to bound the memory."""
        self.began = True
        firsts, clock = self.seeds.firsts(), clock_of(self.crawler)
        rest: Iterator[str] = iter(())
        # Without asyncio, the engine would log the CancelledError that ends start().
        with suppress(CancelledError):
            while True:
                if self._under_way >= URLS_AT_ONCE:
                    await clock.sleep(_IDLE_POLL_SECS)
                elif url := next(rest, None):
                    yield self._request(url)
                elif self._settled:
                    rest = self.seeds.rest(*self._settled.pop())
                elif seed := next(firsts, None):
                    yield self._request(seed[1], seed=seed)
                elif self._under_way:
                    await clock.sleep(_IDLE_POLL_SECS)
                else:
                    return

    def _request(self, url: str, **seed: tuple[int, str]) -> Request:
        """Return the request for *url*. *seed* is empty, or has a site and its first URL."""
        self._under_way += 1
        # The URLs have no duplicates, so the dupefilter need not remember the URL.
        return Request(url, self.parse, errback=self.not_fetched, cb_kwargs=seed, dont_filter=True)

    def parse(self, response: Response, **_: Any) -> None:
        """Count a URL as undecided: a middleware of the project answered before the decision."""
        assert response.request is not None  # set by Scrapy
        self._ended(response.request, "a downloader middleware answered it")

    def not_fetched(self, failure: Failure) -> None:
        """Count a URL as decided if allowed or refused, or as undecided after any other error."""
        request: Request = failure.request  # type: ignore[attr-defined]  # set by Scrapy
        error = failure.value
        decided = None if isinstance(error, PageNotFetched) else type(error).__name__
        self._ended(request, getattr(error, "verdict", decided))

    def _ended(self, request: Request, outcome: Verdict | str | None) -> None:
        """Count the URL of *request* by *outcome*, and call ``verdicts`` with both."""
        self._under_way -= 1
        if isinstance(outcome, str):
            self.undecided[outcome] += 1
        else:
            self.decided += 1
            self._refused += outcome is not None
        if seed := request.cb_kwargs.get("seed"):
            self._sites += 1
            self._settled.append(seed)
        self.progress(decided=self.decided, sites=self._sites, refused=self._refused)
        self.verdicts(request.url, outcome)  # last, as a full disk may raise an error
