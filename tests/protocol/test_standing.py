"""What a site is: the numbers that a report's database holds, and what follows from each."""

from __future__ import annotations

import pickle

import pytest

from scrapy_koster.protocol.standing import Access, Ground, Standing

NUMBERS = {
    "OBEYED": 1,
    "HTML": 2,
    "WITHOUT_ROBOTS_TXT": 3,
    "RESTRICTED": 4,
    "UNAVAILABLE": 5,
    "LET_THROUGH": 6,
    "MISSING": 7,
    "HTML_DISALLOWED": 8,
    "WITHOUT_RULES": 9,
}


def test_the_numbers_never_change() -> None:
    assert {each.name: int(each) for each in Standing} == NUMBERS


@pytest.mark.parametrize("standing", Standing)
def test_what_follows(standing: Standing) -> None:
    assert standing is pickle.loads(pickle.dumps(standing))
    assert (standing.access is Access.BY_RULES) is (standing.ground is Ground.RULE)
    assert standing.ground is not Ground.DELAY  # that is of a request
    assert standing.words.isprintable()
