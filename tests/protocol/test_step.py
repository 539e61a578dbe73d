"""What to do with requests to a site: what test_access.py does not meet."""

from __future__ import annotations

from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.policy import Html, Policy
from scrapy_koster.protocol.step import Obey, next_step

PAGE = Copy("http://h/robots.txt", 200, b"<html>Hello</html>", None, None, fetched=0, expires=10)
FAILED = Failure("it is down", 1, since=1, asked=1, retry=100, stale=PAGE)


def test_an_old_copy_that_is_a_page_is_obeyed_only_if_pages_are() -> None:
    allowing, deferring = Policy(), Policy(html=Html.DEFER)
    assert next_step(FAILED, now=5, policy=allowing) == Obey(PAGE, 10)
    assert not isinstance(next_step(FAILED, now=5, policy=deferring), Obey)
