"""The tables of docs/architecture.md of the life of a site, as the code has them:

PYTHONPATH=tests python -m harness.state_tables
"""

from __future__ import annotations

from harness.documents import text
from scrapy_koster.crawl.states import FATES, TABLE, Action, Event, State

PAGE = "docs/architecture.md"
CORNER = "State"


def moves() -> str:
    """The next state by state and event, and what is done."""
    rows = [[CORNER, *(event.value for event in Event)]]
    rows += [[state.value, *(_cell(state, event) for event in Event)] for state in State]
    return _table(rows)


def _cell(state: State, event: Event) -> str:
    if (state, event) not in TABLE:
        return "-"
    then, action = TABLE[state, event]
    done = "" if action is Action.NOTHING else f": {action.value}"
    return f"{then.value}{done}"


def fates() -> str:
    """What becomes of the requests that wait, by the place where they wait."""
    rows = [["Action", "in place", "parked", "parked and kept"]]
    rows += [[action.value, *(each.value for each in FATES[action])] for action in Action]
    return _table(rows)


def _table(rows: list[list[str]]) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(head: str) -> str:
    """The table of the page that begins with *head*."""
    page = text(PAGE)
    begin = page.index(f"\n| {head} | ") + 1
    return page[begin : page.index("\n\n", begin)]


if __name__ == "__main__":
    print(moves(), fates(), sep="\n\n")  # noqa: T201  # what it is for
