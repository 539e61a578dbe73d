"""Compares what happened with the plan. Each check yields the promises that broke."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from random_crawls.oracle import Oracle
from random_crawls.plan import TIMEOUT_SECS
from random_crawls.run import Course
from random_crawls.web import Visit

GAP_SECS = 0.010
"""A gap may be so much shorter than the delay."""
AFTER_CLOSE_SECS = 1.5
PAUSE_SECS = 6.0
YOUNG_SECS = 0.5
REFUSED = {"RobotsForbidden", "RobotsUnavailable"}
CHECKS: list[Callable[[Course, Oracle], Iterator[str]]] = []


def check(function: Callable[[Course, Oracle], Iterator[str]]) -> Any:
    CHECKS.append(function)
    return function


def faults(course: Course) -> tuple[list[str], list[str]]:
    """Return a line for each promise that broke, three of a kind, and the checks without a verdict.

    If a process was starved, time limits may have passed that are none of its own doing.
    """
    oracle, found, unsure = Oracle(course.plan), list[str](), list[str]()
    for each in CHECKS:
        lines = list(each(course, oracle))
        more = [f"... {len(lines) - 3} more"] if len(lines) > 3 else []
        if not (each in TIMED and any(worker.is_starved for worker in course.workers)):
            found += [f"{each.__name__}: {line}" for line in [*lines[:3], *more]]
        elif lines:
            unsure.append(each.__name__)
    return found, unsure


def _events(course: Course, *kinds: str, runs: range | None = None) -> list[dict[str, Any]]:
    """Return the events of these kinds, with the numbers of their pages."""
    return [
        {**event, "page": _page(event["url"])}
        for worker in course.workers
        if runs is None or worker.run in runs
        for event in worker.events
        if event["event"] in kinds
    ]


def _page(url: str) -> int:
    name = url.rpartition("/")[2]
    return int(name) if name.isdigit() else -1


def _group(course: Course, last: int) -> range:
    """Return the runs that belong together, up to this one."""
    return range(0 if course.plan.jobdir else last, last + 1)


def _lost(course: Course) -> int:
    """Return how many events may lose what is in flight."""
    events = [run.event for run in course.plan.runs]
    return sum(
        each in {"kill", "int twice"} or (each == "int" and not course.plan.jobdir)
        for each in events
    )


def _place(visit: Visit) -> str:
    return f"site {visit.site} {visit.path} (run {visit.run})"


@check
def ends(course: Course, oracle: Oracle) -> Iterator[str]:
    for worker in course.workers:
        run = course.plan.runs[worker.run]
        if worker.is_late:
            yield f"run {worker.run} had not ended after {oracle.bound_secs(worker.run):.0f} s"
        elif worker.status and run.event not in {"kill", "int twice"}:
            yield f"run {worker.run} ended with status {worker.status}: {worker.text[-300:]}"


@check
def finishes(course: Course, oracle: Oracle) -> Iterator[str]:
    """With a JOBDIR, a dead site is given up once its time has passed, in whichever run."""
    reason = course.workers[-1].stats.get("finish_reason")
    if course.plan.runs[-1].wait and reason not in ("finished", "robotstxt_unavailable"):
        yield f"the last of {len(course.plan.runs)} runs ended: {reason}"


# The queue in the JOBDIR of a killed crawl, and a download of aiohttp's handler that is cancelled.
_OF_SCRAPY = re.compile(r"struct\.error: unpack requires|closing of asynchronous generator")


@check
def no_error_is_logged(course: Course, oracle: Oracle) -> Iterator[str]:
    for worker in course.workers:
        # After a second SIGINT, Scrapy leaves its handlers open.
        unclosed = "Unclosed " if "forcing unclean shutdown" in worker.text else "\0"
        for found in re.finditer(r"(.*\] (?:ERROR|CRITICAL): .*)\n((?!\d{4}-).*\n)*", worker.text):
            if not _OF_SCRAPY.search(found[0]) and unclosed not in found[0]:
                yield f"{found[1][:300]} {found[2] or ''}"


@check
def nothing_forbidden(course: Course, oracle: Oracle) -> Iterator[str]:
    read = defaultdict[int, float](float)
    for visit in course.visits:
        life = course.plan.sites[visit.site].life
        if visit.is_robots and visit.ended:
            read[visit.site] = visit.ended
        elif visit.page in oracle.never or (visit.page >= 0 and visit.page not in oracle.may):
            yield f"{_place(visit)} was fetched"
        elif visit.page >= 0 and life:
            age = visit.at - read[visit.site]
            age -= course.starved(visit.run, read[visit.site], visit.at)
            if age > life + 2:
                yield f"{_place(visit)} was fetched by a copy that has expired {age:.1f} s ago"


@check
def all_that_is_allowed(course: Course, oracle: Oracle) -> Iterator[str]:
    for last in oracle.whole_runs():
        runs = range(last + 1) if "HTTPCACHE_DIR" in course.plan.settings else _group(course, last)
        seen = {visit.page for visit in course.visits if visit.run in runs}
        seen |= {event["page"] for event in _events(course, "callback", runs=runs)}
        # A pipeline keeps the files of earlier runs.
        kept = {each for page in course.plan.pages for each in page.pictures}
        seen |= kept & {visit.page for visit in course.visits if visit.run <= last}
        for page in sorted(oracle.must - seen):
            yield f"page {page} of site {course.plan.pages[page].site} (run {last})"


@check
def once(course: Course, oracle: Oracle) -> Iterator[str]:
    plan, extra = course.plan, _lost(course)
    for worker in course.workers:  # connections for which the machine was too slow
        for name, count in worker.stats.items():
            reason = name.partition("retry/reason_count/")[2]
            extra += count if reason and not reason[0].isdigit() else 0
    again = Counter(link for page in plan.pages for link in page.again)
    again.update(target for _, target in plan.redirects())
    for number, parent in enumerate(plan.pages):  # each callback downloads them anew
        again.update(dict.fromkeys(parent.inner + parent.pictures, again[number]))
    counts = Counter((_group(course, visit.run)[0], visit.page) for visit in course.visits)
    for (run, page), count in counts.items():
        workers = plan.runs[run].workers
        most = (1 if plan.shared_queue else workers) + again[page] * workers
        most = most * (1 + plan.retries) + extra
        if plan.pages[page].fails or plan.pages[page].status >= 500:
            most *= 3
        if page >= 0 and count > most:
            yield f"page {page} was fetched {count} times, {most} at most"


@check
def one_end_of_each(course: Course, oracle: Oracle) -> Iterator[str]:
    """Each request ends in one callback or errback; of repeats that are filtered, one does."""
    plan, last = course.plan, len(course.plan.runs) - 1
    downloads = Counter(event["url"] for event in _events(course, "download"))
    downloads.subtract(event["url"] for event in _events(course, "downloaded"))
    if _lost(course) or course.signals or any(worker.status for worker in course.workers):
        return
    yield from (f"{url}: download_async did not end" for url, n in downloads.items() if n)
    ended = Counter(event["id"] for event in _events(course, "callback", "errback"))
    moved = {-1, *(page for pair in plan.redirects() for page in pair)}
    waits = {worker.stats.get("finish_reason") for worker in course.workers if worker.run == last}
    least = 0 if "robotstxt_waiting" in waits else 1
    for run in [last] if plan.jobdir else range(last + 1):
        ends_of = Counter[tuple[int, str]]()
        for event in _events(course, "made", runs=_group(course, run)):
            ends_of[event["page"], event["id"] if event["again"] else ""] += ended[event["id"]]
        for (page, number), count in ends_of.items():
            most = 1 if number or plan.shared_queue else plan.runs[run].workers
            if page not in moved and not least <= count <= most:
                yield f"page {page} ended {count} times {number}"


@check
def right_ends(course: Course, oracle: Oracle) -> Iterator[str]:
    plan = course.plan
    skipped = {-1, *dict(plan.turned), *dict(plan.redirects())}
    is_cut_off = any(run.proxy for run in plan.runs)
    for event in _events(course, "callback", "errback", "downloaded"):
        page, error = event["page"], event.get("error")
        if page in skipped:
            continue
        place = f"page {page} of site {plan.pages[page].site}"
        if page in oracle.must and error in REFUSED and not is_cut_off:
            yield f"{place} must be fetched, and ended with {error}"
        if page in oracle.never:
            fails = plan.pages[page].site in oracle.failing or is_cut_off
            if error not in (REFUSED if fails else {"RobotsForbidden"}):
                yield f"{place} may not be fetched, and ended with {error}"


@check
def fetches_of_robots(course: Course, oracle: Oracle) -> Iterator[str]:
    """A site is asked once, and again when it has expired or failed and that is due."""
    plan = course.plan
    asked = Counter((visit.site, visit.run) for visit in course.visits if visit.is_robots)
    for (number, run), count in asked.items():
        workers = [worker for worker in course.workers if worker.run == run]
        secs = max(each.ended for each in workers) - min(each.began for each in workers)
        most = oracle.attempts_at_most(plan.sites[number], secs) * len(workers)
        if count > most:
            yield f"site {number} was asked {count} times in {secs:.0f} s (run {run})"
    if plan.storage == "memory" or any(run.event in {"kill", "disk is full"} for run in plan.runs):
        return
    for site in plan.sites:
        count = sum(count for (number, _), count in asked.items() if number == site.number)
        is_kept = site.number not in oracle.failing and not site.life and not site.later
        if is_kept and count > 1 and not course.signals and not plan.runs[0].proxy:
            yield f"site {site.number} was asked {count} times, and the storage keeps its copy"


@check
def gaps(course: Course, oracle: Oracle) -> Iterator[str]:
    """A host with a delay rests that long after each answer."""
    for site in [site for site in course.plan.sites if site.delay]:
        visits = [each for each in course.visits if each.site == site.number]
        first = next((n for n, each in enumerate(visits) if each.status == 200), len(visits))
        for before, after in zip(visits[first:], visits[first + 1 :], strict=False):
            is_kept = before.run == after.run or course.plan.storage != "memory"
            gap = after.at - (before.ended or 0)
            if is_kept and before.ended and gap < site.delay - GAP_SECS:
                yield f"{_place(after)} came {gap:.3f} s after an answer, of {site.delay} s"


@check
def quiet_after_close(course: Course, oracle: Oracle) -> Iterator[str]:
    for visit in course.visits:
        if course.plan.runs[visit.run].event.startswith("int") and visit.is_robots:
            sent = course.signals.get(visit.run, visit.at)
            late = visit.at - sent - course.starved(visit.run, sent, visit.at)
            if late > AFTER_CLOSE_SECS:
                yield f"{_place(visit)} was asked {late:.1f} s after SIGINT"


@check
def no_pause(course: Course, oracle: Oracle) -> Iterator[str]:
    """While a page of a healthy site is known and not fetched, the server has work."""
    plan = course.plan
    in_place = any(page.pictures or page.inner for page in plan.pages)
    longest = PAUSE_SECS + (TIMEOUT_SECS if in_place else 0)
    # Files that come together are read one after the other, 20,000 rules in about 0.3 s.
    longest += sum(site.filler for site in plan.sites) / 50_000
    steady = {site.number for site in plan.sites if not (site.delay or site.fails or site.life)}
    pages = {page for page in oracle.must if plan.pages[page].site in steady}
    for run in oracle.whole_runs():
        if plan.runs[run].event or plan.jobdir or "HTTPCACHE_DIR" in plan.settings:
            continue
        known, first = dict[int, float](), dict[int, float]()
        for event in _events(course, "made", runs=range(run, run + 1)):
            known.setdefault(event["page"], event["at"])
        visits = [each for each in course.visits if each.run == run and each.page >= 0]
        for visit in visits:
            first.setdefault(visit.page, visit.at)
        end = max(worker.ended for worker in course.workers if worker.run == run)
        quiet = visits[0].at if visits else end
        for at, ended in [*((each.at, each.ended or each.at) for each in visits), (end, end)]:
            if at - quiet > longest + course.starved(run, quiet, at):
                waited = [p for p in pages & set(known) if known[p] < quiet <= first.get(p, end)]
                if waited:
                    yield f"{at - quiet:.1f} s without a page, {len(waited)} were possible"
            quiet = max(quiet, ended)


@check
def at_once(course: Course, oracle: Oracle) -> Iterator[str]:
    """No more files are fetched at once than pages may be, or 8; never twice as many."""
    for number, run in enumerate(course.plan.runs):
        moments = []
        for each in course.visits:
            if each.is_robots and each.run == number:
                end = min(each.ended or each.at + YOUNG_SECS, each.at + YOUNG_SECS)
                moments += [(each.at, 1), (end, -1)]
        most = max(course.plan.settings["CONCURRENT_REQUESTS"], 8) * run.workers
        count = highest = 0
        for _, change in sorted(moments):
            count += change
            highest = max(highest, count)
        if highest > 2 * most:
            yield f"{highest} robots.txt at once, of {most}"


@check
def numbers_add_up(course: Course, oracle: Oracle) -> Iterator[str]:
    plan = course.plan
    has_pictures = any(page.pictures for page in plan.pages)
    uncounted = {"refuse", "reset"} & {site.robots for site in plan.sites}
    for worker in course.workers:
        run = plan.runs[worker.run]
        if not worker.stats or run.event.startswith("int"):
            continue
        seen = sum(each.is_robots and each.run == worker.run for each in course.visits)
        count = worker.stats.get("robotstxt/request_count", 0)
        if run.workers == 1 and not run.proxy and not uncounted and count != seen:
            yield f"robotstxt/request_count is {count}, the server saw {seen}"
        refused = sum(event.get("error") in REFUSED for event in worker.events)
        count = worker.stats.get("robotstxt/forbidden", 0)
        if count < refused or (count > refused and not has_pictures):
            yield f"robotstxt/forbidden is {count}, {refused} were refused"
        counted = worker.text.partition("INFO: Sites: ")[2].partition(". Requests")[0]
        if sum(map(int, re.findall(r"(?:^|, )(\d+) ", counted))) > len(plan.sites):
            yield f"the summary has more than {len(plan.sites)} sites: {counted}"


@check
def memory(course: Course, oracle: Oracle) -> Iterator[str]:
    for event in _events(course, "ended"):
        if course.plan.megabytes and event["megabytes"] > course.plan.megabytes:
            yield f"{event['megabytes']} MB of {course.plan.megabytes}"


TIMED = {ends, all_that_is_allowed, right_ends, fetches_of_robots}
"""Checks of what a process does in time."""
