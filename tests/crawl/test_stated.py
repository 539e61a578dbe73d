"""Stated: which statements applied to a page when it was requested."""

from __future__ import annotations

import gc

from scrapy import Request

from scrapy_koster.crawl.pages.stated import Stated
from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.protocol.usage import Statement
from scrapy_koster.protocol.usage_lines import usage_lines

BODY = b"User-agent: *\nContent-Usage: train-ai=n\n"


def statements() -> tuple[Statement, ...]:
    lines = usage_lines(BODY, KosterRobotParser(BODY))
    assert lines is not None
    return lines.statements("http://a/b", "figtree")


def test_what_applies_is_noted_for_the_request() -> None:
    stated, request = Stated(), Request("http://a/b")
    assert stated.about(request) == ()
    stated.note(request, statements())
    [statement] = stated.about(request)
    assert statement.line == 2
    assert stated.about(request.copy()) == ()


def test_a_copy_that_states_nothing_any_more() -> None:
    stated, request = Stated(), Request("http://a/b")
    stated.note(request, statements())
    stated.note(request, ())
    assert stated.about(request) == ()


def test_nothing_is_kept_of_a_request_that_is_gone() -> None:
    stated, request = Stated(), Request("http://a/b")
    stated.note(request, statements())
    assert len(stated._found) == 1
    del request
    gc.collect()
    assert len(stated._found) == 0
