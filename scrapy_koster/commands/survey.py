"""``scrapy robots survey``: the URLs of a list that would be refused."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from scrapy.exceptions import UsageError

from scrapy_koster.commands.explained import outcome_of
from scrapy_koster.commands.lookup import QUIET
from scrapy_koster.commands.output import opened, progress_of
from scrapy_koster.commands.seeds import Seeds
from scrapy_koster.commands.style import Line, counted, table
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
from scrapy_koster.crawl.report import RobotsReport, folder_of, write_report
from scrapy_koster.crawl.robot import copies_of
from scrapy_koster.crawl.survey import SURVEY_SETTINGS, SurveySpider, survey_addons
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.verdict import Verdict
from scrapy_koster.report.database import DatabaseError
from scrapy_koster.report.numbers import read
from scrapy_koster.report.writing import whole

_REFUSED = 1
_SHOWN = 10
_LINES = (("repeated", "duplicate"), ("broken", "invalid"), ("skipped", "blank or comment"))
"""Keys of ``Seeds.counts``, with the words for the first line of the answer."""


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
        run.warn(f"{name}: {seeds.hosts} lines without a scheme; https is assumed")
    if not len(seeds):
        raise UsageError(f"{name!r} has no URL; write one URL or host a line")


def _surveyed(run: Run, seeds: Seeds) -> Iterator[Line]:
    project = replace(run, settings=run.settings.copy())
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
        numbers = read(report.database).to_dict()
        _judge(run, numbers, spider, len(seeds))
        given = {**seeds.counts, "urls": len(seeds), "decided": spider.decided}
        yield from run.answer({"given": given, **numbers}, _as_text(given, numbers))
        if run.opts.output is not None:
            write_report(crawler, run.config, report.database, run.opts.output)
    except DatabaseError as error:
        run.warn(str(error), FAILED)


@contextmanager
def _verdict_file(name: str | None) -> Iterator[Callable[..., object] | None]:
    """Yield a function that adds a row to the CSV file *name*, or None without a name.

    The file is written whole or not at all.
    """
    if name is None:
        yield None
        return
    with whole(name) as path, path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("url", "verdict", "line", "because"))
        yield lambda url, outcome: writer.writerow((url, *_cells(outcome)))


def _cells(outcome: Verdict | str | None) -> tuple[str, int | str | None, str]:
    match outcome:
        case None:
            return "allowed", "", ""
        case str():
            return "not decided", "", printable(outcome)
        case _:
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
        run.warn(f"{count} URLs were not decided: {printable(why)}", NOT_RETRIEVED)
    left = urls - spider.decided - spider.undecided.total()
    if left:
        message = f"stopped before {left} of {urls} URLs were decided; run it again to continue"
        run.warn(message, NOT_RETRIEVED)


def _as_text(given: dict[str, int], numbers: dict[str, Any]) -> Iterator[Line]:
    """Yield tables for people."""
    others = "".join(f", {given[key]:,} {what}" for key, what in _LINES if given[key])
    yield f"{counted(given['lines'], 'line')}: {counted(given['urls'], 'URL')}{others}"
    requests = numbers["requests"]
    refused = {f"would be refused: {why}": count for why, count in requests["refused"].items()}
    urls = {"would be fetched": requests["allowed"], **refused}
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
        columns = ("refused", "site", "line", "text")
        cells = [[rule[column] for column in columns] for rule in rules]
        yield from table(("REFUSED", "SITE", "LINE", ""), cells)
