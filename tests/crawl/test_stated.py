"""Stated: which statements applied to a page when it was requested."""

from __future__ import annotations

import gc

from scrapy import Request

from scrapy_koster.crawl.pages.stated import Stated
from scrapy_koster.crawl.sites import Facts, SiteState
from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.access import Copy, Failure
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.step import Obey, Pass, Step
from scrapy_koster.protocol.usage import UsageAction, UsageChoice
from scrapy_koster.protocol.usage_lines import usage_lines

SITE = Site("http", "a", 80)
BODY = b"User-agent: *\nContent-Usage: train-ai=n\n"
FAILURE = Failure("HTTP 503", 1, 0.0, 0.0, 9.0, None)
REFUSING = UsageChoice(purposes=("train-ai",), action=UsageAction.REFUSE)


def state_of(body: bytes) -> tuple[SiteState, Step]:
    state = SiteState(SITE)
    copy = Copy(SITE.robots_url, 200, body, None, None, 0.0, 9.0)
    parser = KosterRobotParser(body)
    state.learn(Facts(known=copy, parser=parser, usage=usage_lines(body, parser)))
    return state, Obey(copy, 9.0)


def test_what_applies_is_noted_for_the_request() -> None:
    stated, request = Stated(UsageChoice()), Request("http://a/b")
    assert stated.about(request) == ()
    assert stated.look(request, *with_robot(BODY)) is None
    [statement] = stated.about(request)
    assert statement.line == 2
    assert stated.about(request.copy()) == ()


def with_robot(body: bytes) -> tuple[SiteState, str, Step]:
    state, step = state_of(body)
    return state, "figtree", step


def test_a_copy_that_states_nothing_any_more() -> None:
    stated, request = Stated(REFUSING), Request("http://a/b")
    assert stated.look(request, *with_robot(BODY)) is not None
    assert stated.look(request, *with_robot(b"User-agent: *\nDisallow:\n")) is None
    assert stated.about(request) == ()


def test_without_a_copy_in_force_nothing_is_stated() -> None:
    """It passes by KOSTER_UNAVAILABLE; what an old copy states is not what holds now."""
    stated, request = Stated(REFUSING), Request("http://a/b")
    state, _ = state_of(BODY)
    assert stated.look(request, state, "figtree", Pass(FAILURE, 9.0)) is None
    assert stated.about(request) == ()


def test_robots_txt_itself_is_never_refused() -> None:
    stated = Stated(REFUSING)
    assert stated.look(Request("http://a/robots.txt"), *with_robot(BODY)) is None
    assert stated.look(Request("http://a/robots.txt?a"), *with_robot(BODY)) is not None


def test_nothing_is_kept_of_a_request_that_is_gone() -> None:
    stated = Stated(UsageChoice())
    request = Request("http://a/b")
    stated.look(request, *with_robot(BODY))
    assert len(stated._found) == 1
    del request
    gc.collect()
    assert len(stated._found) == 0
