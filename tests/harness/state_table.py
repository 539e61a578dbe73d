"""The table of docs/architecture.md of the life of a site, as the code has it:

PYTHONPATH=tests python -m harness.state_table
"""

from __future__ import annotations

from scrapy_koster.crawl.states import TABLE, Event, State


def table() -> str:
    """The action by state and event; - where no event can come."""
    rows = [["State", *(event.value for event in Event)], ["---"] * (1 + len(Event))]
    rows += [[state.value, *(_cell(state, event) for event in Event)] for state in State]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(state: State, event: Event) -> str:
    return TABLE[state, event].value if (state, event) in TABLE else "-"


if __name__ == "__main__":
    print(table())  # noqa: T201  # what it is for
