"""Crawls the site of section 4 of the draft as four robots, and shows what became of it.

Exits with 1, and says what differs, where that is not what has to be.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fict.items import Page, Text, Visit
from fict.server import FictOrg
from fict.site import (
    DIRECTED,
    MATRIX,
    ORIGIN,
    ROBOTS,
    ROBOTS_TXT,
    USAGE_PAGES,
    USAGE_ROBOTS_TXT,
)
from scrapy import signals
from scrapy.crawler import CrawlerProcess
from scrapy.exceptions import DropItem
from scrapy.utils.project import get_project_settings

from scrapy_koster import KosterRobotParser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fict.site import Directed
    from scrapy.settings import Settings

STATS = (
    "robotstxt/request_count",
    "robotstxt/forbidden",
    "koster/forbidden/rule",
)
PAGES = Path("reports")
"""Below the folder of the project: the report of each crawl."""
EVIDENCE = Path("evidence")
"""The same: the archive of each crawl."""
EXPLAINED = "/org/plans.html"
USAGE_STATS = (
    "koster/usage/train-ai/allow",
    "koster/usage/train-ai/disallow",
    "koster/usage/dropped",
    "koster/usage/refused",
)
META_STATS = ("koster/meta/noindex", "koster/meta/nofollow")


class Crawl:
    """A crawl of one spider of the project, and what came out of it."""

    def __init__(self, process: CrawlerProcess, spider: str, robots_txt: bytes) -> None:
        self.spider = spider
        self._visits: dict[str, Visit] = {}
        self._pages: set[str] = set()
        self._crawler = process.create_crawler(spider)
        self._parser = KosterRobotParser.from_crawler(self._crawler, robots_txt)
        self.page = PAGES / f"{spider}.html"
        self._crawler.settings.set("KOSTER_REPORT", self.page, "cmdline")
        self._crawler.settings.set("KOSTER_ARCHIVE", EVIDENCE, "cmdline")
        self._texts: dict[str, Text] = {}
        self._dropped: dict[str, str] = {}
        self._crawler.signals.connect(self._item_scraped, signals.item_scraped)
        self._crawler.signals.connect(self._item_dropped, signals.item_dropped)
        process.crawl(self._crawler)

    def _item_scraped(self, item: Visit | Page | Text) -> None:
        path = urlsplit(item.url).path
        match item:
            case Visit():
                self._visits[path] = item
            case Page():
                self._pages.add(path)
            case Text():
                self._texts[path] = item

    def _item_dropped(self, item: Text, exception: DropItem) -> None:
        self._dropped[urlsplit(item.url).path] = str(exception)

    def use(self, path: str) -> tuple[str, str]:
        """What became of a page that was collected to train a model, and why."""
        if path in self._texts:
            return "kept", _statement(self._texts[path], "train-ai")
        if path in self._dropped:
            return "dropped", self._dropped[path].partition(" by ")[2]
        visit = self._visits.get(path)
        return ("refused", visit.verdict.partition(", which")[0]) if visit else ("lost", "")

    def stat(self, name: str) -> int:
        value: int = self._crawler.stats.get_value(name, 0)
        return value

    def fetched(self, path: str) -> bool | None:
        """Whether it was fetched (True) or refused (False); None: it was neither."""
        visit = self._visits.get(path)
        return visit.fetched if visit else None

    def line(self, path: str) -> int | None:
        """The line of /robots.txt that decided; None where no line did."""
        visit = self._visits.get(path)
        if visit is None or not visit.fetched:
            return visit.line if visit else None
        said = self._parser.ruling(visit.url, self.spider)
        return said.rule.number if said.rule else None

    def url(self, path: str) -> str:
        """The URL of a path that was visited."""
        return self._visits[path].url

    def yielded(self, path: str) -> bool:
        """Whether an item of this page came out."""
        return path in self._pages

    def asked(self) -> set[str]:
        """The paths of what the site was asked for."""
        site = self._crawler.get_extension(FictOrg)
        return set(site.asked) if site else set()


def _statement(item: Text, label: str) -> str:
    """The first statement of the item's page about *label*."""
    for each in item.usage.get("statements", ()):
        if label in each["preferences"]:
            where = f"line {each['line']} " if each["line"] else ""
            return f"{where}'{each['text']}'"
    return f"nothing is stated of {label}"


# What is printed.


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows as lines, with their columns below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  " + "  ".join(f"{{:{width}}}" for width in widths)
    return "\n".join(line.format(*row).rstrip() for row in rows)


def numbered(robots_txt: bytes) -> str:
    return "\n".join(
        f"  {number:3}  {line.decode('latin-1').encode('unicode_escape').decode()}".rstrip()
        for number, line in enumerate(robots_txt.rstrip().splitlines(), 1)
    )


def matrix(crawls: Sequence[Crawl]) -> str:
    head = ["", *(crawl.spider for crawl in crawls)]
    return table([head, *([ORIGIN + path, *(cell(c, path) for c in crawls)] for path in MATRIX)])


def cell(crawl: Crawl, path: str) -> str:
    words = {True: "Yes", False: "No", None: "lost"}
    line = crawl.line(path)
    return f"{words[crawl.fetched(path)]:4}" + (f"line {line}" if line else "")


def matrix_counts(robots: Sequence[Crawl]) -> str:
    rows = [[name, *(str(crawl.stat(name)) for crawl in robots)] for name in STATS]
    asked = ["URLs that the site was asked for", *(str(len(crawl.asked())) for crawl in robots)]
    return table([["", *(crawl.spider for crawl in robots)], *rows, asked])


def directives(crawl: Crawl) -> str:
    head = ["The page says", "its item", "its link"]
    return table([head, *(directed(crawl, page) for page in DIRECTED)])


def directed(crawl: Crawl, page: Directed) -> list[str]:
    item = "came out" if crawl.yielded(page.path) else "dropped"
    link = "followed" if crawl.yielded(page.beyond) else "dropped"
    return [page.says or "(nothing)", item, link]


def used(crawl: Crawl) -> str:
    head = ["The page says", "its text was", "because of"]
    pages = ([each.path, each.says or "(nothing)", *crawl.use(each.path)] for each in USAGE_PAGES)
    return table([["", *head], *pages])


def report(robots_txt: bytes, robots: Sequence[Crawl], meta: Crawl, train: Crawl) -> str:
    return f"""\
The site of section 4 of the draft, served on 127.0.0.1. Its /robots.txt:

{numbered(robots_txt)}

What four robots fetched of it (Yes), what they were refused (No), and the line that decided:

{matrix(robots)}

The counts, out of Scrapy's stats:

{matrix_counts(robots)}

The robots META tag and its header, as a robot named figtree met them:

{directives(meta)}

The counts, out of Scrapy's stats:

{table([[name, str(meta.stat(name))] for name in META_STATS])}

The same site, for a robot that collects texts to train a model. Its /robots.txt:

{numbered(USAGE_ROBOTS_TXT.encode())}

What was kept, dropped and refused, and the statement that decided:

{used(train)}

The counts, out of Scrapy's stats:

{table([[name, str(train.stat(name))] for name in USAGE_STATS])}
"""


def explained(crawl: Crawl, path: str) -> str:
    """Return what the archive shows about a page, by a command in a process of its own."""
    command = ["robots", "explain", "--at", f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}"]
    command += ["--archive", str(EVIDENCE), crawl.url(path)]
    ran = subprocess.run(
        [sys.executable, "-m", "scrapy", *command], capture_output=True, text=True, check=False
    )
    return "\n".join((f"$ scrapy {' '.join(command)}", ran.stdout + ran.stderr))


# What has to be so.


def differences(robots: Sequence[Crawl], meta: Crawl, train: Crawl) -> Iterator[str]:
    for crawl in robots:
        yield from matrix_differences(crawl)
    for each in USAGE_PAGES:
        outcome, why = train.use(each.path)
        if outcome != each.outcome or each.by not in why:
            yield f"train: {each.path} was {outcome} by {why}, not {each.outcome} by {each.by}"
        if outcome == "refused" and each.path in train.asked():
            yield f"train: {each.path} was refused, but its request left"
    for page in DIRECTED:
        if meta.yielded(page.path) is not page.item:
            yield f"meta: the item of {page.path} ({page.says}) should{_not(page.item)} come out"
        if meta.yielded(page.beyond) is not page.link:
            yield f"meta: the link of {page.path} ({page.says}) should{_not(page.link)} be followed"
    for name, may in zip(META_STATS, ("item", "link"), strict=True):
        dropped = sum(not getattr(page, may) for page in DIRECTED)
        if meta.stat(name) != dropped:
            yield f"meta: {name} is {meta.stat(name)}, and {dropped} should have been dropped"


def matrix_differences(crawl: Crawl) -> Iterator[str]:
    refused = 0
    for path, may in MATRIX.items():
        found = crawl.fetched(path)
        refused += found is False
        if found is not may[crawl.spider]:
            words = {True: "fetched", False: "refused", None: "lost"}
            wanted = words[may[crawl.spider]]
            yield f"{crawl.spider}: {ORIGIN}{path} was {words[found]}, the draft says: {wanted}"
        if found is False and path in crawl.asked():
            yield f"{crawl.spider}: {ORIGIN}{path} was refused, but its request left"
    if crawl.stat("robotstxt/forbidden") != refused:
        told = crawl.stat("robotstxt/forbidden")
        yield f"{crawl.spider}: robotstxt/forbidden is {told}, and {refused} were refused"


def _not(wanted: object) -> str:
    return "" if wanted else " not"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robots", type=Path, metavar="FILE", help="serve this /robots.txt")
    file: Path | None = parser.parse_args(arguments).robots
    robots_txt = file.read_bytes() if file else ROBOTS_TXT.encode()
    with TemporaryDirectory() as folder:
        process = CrawlerProcess(settings(file, folder))
        robots = [Crawl(process, name, robots_txt) for name in ROBOTS]
        meta = Crawl(process, "meta", robots_txt)
        train = Crawl(process, "train", USAGE_ROBOTS_TXT.encode())
        process.start()
    print(report(robots_txt, robots, meta, train))
    print("The report of each crawl, to be opened in a browser:\n")
    print("\n".join(f"  {crawl.page.absolute()}" for crawl in (*robots, meta, train)), end="\n\n")
    print(f"The archive of each crawl is in {EVIDENCE.absolute()}. What it shows about one page:\n")
    if robots[-1].fetched(EXPLAINED) is not None:
        print(explained(robots[-1], EXPLAINED))
    found = list(differences(robots, meta, train))
    if not found:
        print("The matrix is the draft's, and directives and preferences were kept to.")
        return 0
    print("This is not as it should be:", *found, sep="\n  ")
    return 1


def settings(file: Path | None, folder: str) -> Settings:
    os.environ["SCRAPY_SETTINGS_MODULE"] = "fict.settings"
    settings = get_project_settings()
    settings.set("LOG_LEVEL", "WARNING", "cmdline")
    settings.set("FICT_ROBOTS_TXT", file, "cmdline")
    # The port is another one each time: what was stored of it would be of no use.
    settings.set("KOSTER_SQLITE_PATH", Path(folder, "robots.sqlite3"), "cmdline")
    return settings


if __name__ == "__main__":
    sys.exit(main())
