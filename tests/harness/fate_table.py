"""The table of docs/architecture.md of what becomes of a waiting request, as the code has it:

PYTHONPATH=tests python -m harness.fate_table
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.documents import text
from scrapy_koster.crawl.keeping.fate import Crawl, Fate, Place, fate
from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.step import Ask, Defer, Obey, Pass, Refuse, Step

PAGE = "docs/architecture.md"
COPY = Copy("http://a.example/robots.txt", 200, b"", None, None, 0.0, 0.0)
FAILURE = Failure("HTTP 503", 1, 0.0, 0.0, 10.0, None)
STEPS: tuple[Step, ...] = (
    Obey(COPY, 1.0), Pass(FAILURE, 1.0), Refuse(FAILURE, 1.0), Ask(None), Defer(FAILURE, 1.0),
)  # fmt: skip

WORDS = {
    Fate.WAIT: "waits",
    Fate.GO: "goes on",
    Fate.GIVE_UP: "is refused",
    Fate.KEEP: "stays parked",
}


def rows() -> Iterator[tuple[str, str, str, tuple[Fate, ...]]]:
    """Step, crawl, whether the site has failed, and the fate in each place."""
    for step in STEPS:
        for crawl in Crawl:
            for has_failed in (False, True):
                cells = tuple(fate(step, crawl, place, has_failed=has_failed) for place in Place)
                failed = "yes" if has_failed else "no"
                yield type(step).__name__, crawl.value, failed, cells


def merged() -> Iterator[list[str]]:
    """The rows, with those that are the same in all crawls or steps as one."""
    found = list(rows())
    steps: dict[tuple[tuple[str, str, tuple[Fate, ...]], ...], list[str]] = {}
    for name in dict.fromkeys(row[0] for row in found):
        steps.setdefault(tuple(row[1:] for row in found if row[0] == name), []).append(name)
    for same, names in steps.items():
        step = ", ".join(f"`{name}`" for name in names)
        cells = {row[2] for row in same}
        if len(cells) == 1:
            yield [step, "any", "-", *(WORDS[each] for each in cells.pop())]
            continue
        for crawl, failed, fates in same:
            yield [step, crawl, failed, *(WORDS[each] for each in fates)]


def table() -> str:
    head = ["Step of its site", "Crawl", "Site has failed", *(place.value for place in Place)]
    lines = [head, ["---"] * len(head), *merged()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written() -> str:
    """The table as the page has it."""
    page = text(PAGE)
    begin = page.index("| Step of its site |")
    return page[begin : page.index("\n\n", begin)]


if __name__ == "__main__":
    print(table())  # noqa: T201  # what it is for
