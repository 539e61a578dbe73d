"""Faults, and what is promised of each: the rows of docs/reliability.md.

    PYTHONPATH=tests python -m harness.faults

writes the tables into that page. test_faults.py makes a real crawl of each fault, and asserts that
the page has the tables: a row there has the faults of a group with the same result. The faults that
docs/access.md lists (harness.comparison) are only counted. What all faults promise is asserted of
all: nothing is fetched that was not allowed, each request ends exactly once, and the crawl ends
within a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness import faults_around, faults_of_sites
from harness.comparison import ROWS, Means
from harness.documents import marked, write_marked

PAGE = "docs/reliability.md"
MARKS = ("<!-- faults -->\n", "<!-- /faults -->")
OF_SITES = {
    Means.RULES: "its rules are obeyed",
    Means.UNRESTRICTED: "every page is allowed",
    Means.RESTRICTED: "every request is refused (RobotsForbidden)",
    Means.DEFERRED: "retried, then refused (RobotsUnavailable)",
}
AROUND = "rules are obeyed; "
COMPARED = "access.md#compared-with-scrapys-own-middleware"


@dataclass(frozen=True)
class Told:
    """A fault, as the page has it."""

    group: str
    fault: str
    promised: str
    compared: bool = False
    """Whether docs/access.md has the fault."""


def told() -> Sequence[Told]:
    answers = {row.answer for row in ROWS}
    rows = [
        *(
            Told(f.group, f.name, OF_SITES[f.means], f.group != "the proxy" and f.name in answers)
            for f in faults_of_sites.FAULTS
        ),
        *(Told(f.group, f.name, AROUND + f.warned) for f in faults_around.FAULTS),
    ]
    assert len({(row.group, row.fault) for row in rows}) == len(rows)
    return rows


def tables() -> str:
    faults = told()
    by_result: dict[str, dict[str, list[str]]] = {}
    for fault in faults:
        if not fault.compared:
            results = by_result.setdefault(fault.group, {})
            results.setdefault(fault.promised, []).append(fault.fault)
    compared = sum(fault.compared for fault in faults)
    parts = [f"{len(faults)} faults: {compared} in [access.md]({COMPARED}), and these:"]
    for group, results in by_result.items():
        lines = [f"| {'; '.join(names)} | {result} |" for result, names in results.items()]
        parts.append("\n".join([f"| {group} | result |", "|---|---|", *lines]))
    return "\n\n".join(parts) + "\n\n"


def shown(page: str) -> str:
    """What *page*, of Markdown, has between the marks."""
    return marked(page, MARKS)


if __name__ == "__main__":
    write_marked(PAGE, MARKS, tables())
