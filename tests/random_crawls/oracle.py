"""Computes from a plan what its crawl must do, and what it may do. Pages are their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from random_crawls.plan import DEAD, TIMEOUT_SECS, Page, Plan, Site

START_SECS = 20.0
"""For a process to start, on a machine that is busy."""


class Oracle:
    """What a plan entails."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._settings = plan.settings
        self._in_place = {each for page in plan.pages for each in page.pictures + page.inner}
        self.failing = {
            site.number
            for site in plan.sites
            if site.robots in DEAD or site.fails or site.until_event
        }
        """Sites whose requests may end with RobotsUnavailable."""
        self.never = {n for n, page in enumerate(plan.pages) if True not in self._allows(page)}
        """Pages that no file allows, or whose site has none to read."""

    def _allows(self, page: Page) -> set[bool]:
        site = self.plan.sites[page.site]
        if site.robots == "closed":  # RFC 9309, 2.3.1.3: 401 and 403 open a site
            return {self._settings["KOSTER_PARSER"].endswith(".Rfc9309RobotParser")}
        return site.allows(page.folder)

    @cached_property
    def must(self) -> set[int]:
        """Pages that the crawl fetches, if nothing ends it early."""
        retries = 2 if self._settings.get("RETRY_ENABLED", True) else 0
        found = self._reached(self._is_sure, lambda page: page.fails <= retries)
        if any(run.event == "kill" for run in self.plan.runs):
            sites = self.plan.sites  # requests in flight are lost, waiting requests are not
            return {each for each in found if sites[self.plan.pages[each].site].until_event}
        return found

    @cached_property
    def may(self) -> set[int]:
        """Pages that the crawl may fetch."""
        return self._reached(lambda page: page not in self.never, lambda _: True)

    def _reached(self, can: Callable[[int], bool], recovers: Callable[[Page], bool]) -> set[int]:
        found, turned = set[int](), dict(self.plan.turned)
        waiting = [number for number, _ in self.plan.starts] + self.plan.idle
        while waiting:
            number = waiting.pop()
            if number not in found and number not in turned and can(number):
                found.add(number)
                page = self.plan.pages[number]
                if page.status < 400 and recovers(page):
                    waiting += page.links + page.pictures + page.inner
        return found

    def _is_sure(self, number: int) -> bool:
        page = self.plan.pages[number]
        site = self.plan.sites[page.site]
        return self._allows(page) == {True} and self._answers_in_time(site, number)

    def _answers_in_time(self, site: Site, number: int) -> bool:
        """Return whether the request for this page waits long enough for its site."""
        if site.until_event or not site.fails:
            return self.plan.jobdir or not site.until_event
        wait = sum(self._step(each) * 1.25 for each in range(site.fails))
        limits = [self._settings[f"KOSTER_{name}_LIMIT_SECS"] for name in ("DEFER", "IDLE")]
        return bool(number not in self._in_place and 3 * wait + 5 < min(limits))

    def _step(self, failures: int) -> float:
        """Return the interval after so many failures and one more."""
        first = self._settings["KOSTER_DEFER_FIRST_SECS"] * 2.0**failures
        return float(min(first, self._settings["KOSTER_DEFER_MAX_SECS"]))

    def attempts_at_most(self, site: Site, secs: float) -> int:
        """Return how often one process may fetch this robots.txt in so many seconds."""
        count, at = 1, 0.0
        while site.number in self.failing and at <= secs:
            at += 0.9 * self._step(count - 1)
            count += 1
        if site.life:
            count += int(secs / site.life) + 1
        if "KOSTER_MEMORY_SITES" in self._settings and self.plan.storage == "memory":
            # A request may come after its site has left the memory, which is the storage.
            pages = [page for page in self.plan.pages if page.site == site.number]
            count += sum(3 if page.status >= 500 else 1 + page.fails for page in pages)
        return count * (2 if site.robots == "reset" else 1)  # some handlers send it twice

    def bound_secs(self, number: int) -> float:
        """Return when a run has ended, generously."""
        plan, run = self.plan, self.plan.runs[number]
        host = dict.fromkeys(range(len(plan.sites)), 0.0)
        for page in plan.pages:
            cost = plan.sites[page.site].delay + page.secs
            cost += 0.3 if {"DOWNLOAD_DELAY", "AUTOTHROTTLE_ENABLED"} & set(plan.settings) else 0
            host[page.site] += cost * run.workers * (1 + page.fails + len(page.again))
        work = sum(page.secs * (1 + page.fails) for page in plan.pages)
        work = work / plan.settings["CONCURRENT_REQUESTS"] + plan.block * len(plan.pages) / 5
        waits = 4 * TIMEOUT_SECS + 3 * self._settings["KOSTER_IDLE_LIMIT_SECS"]
        if run.event == "disk is full":
            waits += self._settings["KOSTER_DEFER_LIMIT_SECS"]
        return float(START_SECS + 1.5 * max(host.values()) + 2 * work + waits)

    def whole_runs(self) -> Iterator[int]:
        """Yield the runs that fetch all pages; with a JOBDIR the last, with those before it."""
        runs = self.plan.runs
        for number, run in enumerate(runs):
            is_whole = run.event in {"", "disk is full"} and run.proxy != "dead"
            if self.plan.jobdir:
                is_whole &= run is runs[-1] and all(r.event != "int twice" for r in runs)
            if is_whole:
                yield number
