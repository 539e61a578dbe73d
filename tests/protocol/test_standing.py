"""What a site is: the numbers that a report's database holds, and what follows from each."""

from __future__ import annotations

import pickle

import pytest

from scrapy_koster.protocol.standing import Ground, Standing

NUMBERED = (
    "OBEYED HTML WITHOUT_ROBOTS_TXT RESTRICTED UNAVAILABLE LET_THROUGH MISSING HTML_DISALLOWED"
    " WITHOUT_RULES"
)


def test_the_numbers_never_change() -> None:
    numbers = {name: n for n, name in enumerate(NUMBERED.split(), 1)}
    assert {each.name: int(each) for each in Standing} == numbers


@pytest.mark.parametrize("standing", Standing)
def test_what_follows(standing: Standing) -> None:
    assert standing is pickle.loads(pickle.dumps(standing))
    assert standing.ground is not Ground.DELAY  # that is of a request
    assert standing.words.isprintable()
