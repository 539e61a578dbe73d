"""What a site is: the numbers that a report's database holds, and what follows from each."""

from __future__ import annotations

from scrapy_koster.protocol.site_status import SiteStatus

NUMBERED = (
    "OBEYED HTML WITHOUT_ROBOTS_TXT RESTRICTED UNAVAILABLE LET_THROUGH MISSING HTML_DISALLOWED"
    " WITHOUT_RULES"
)


def test_the_numbers_never_change() -> None:
    numbers = {name: n for n, name in enumerate(NUMBERED.split(), 1)}
    assert {each.name: int(each) for each in SiteStatus} == numbers
