"""How many of something a test tries: some, or with `pytest --many` (`make test-rest`) many."""

from __future__ import annotations

from hypothesis import settings


def so_many(some: int, many: int) -> int:
    """One of the two, as hypothesis tries few or many examples of each property."""
    return many if settings().max_examples > EXAMPLES else some


EXAMPLES = 30
MANY_EXAMPLES = 150
