"""What a verdict says, in one line and in JSON."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from harness.verdicts import SITE, judged
from hypothesis import given
from hypothesis import strategies as st
from twisted.python.failure import Failure

from scrapy_koster.crawl.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.protocol.access import Answer, CachedRobots, FetchFailure
from scrapy_koster.protocol.defect import ParserDefectError
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.exchange import Exchange, digest_of, is_digest
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.policy import Html, Missing, Policy, Restricted
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt, Strictest
from scrapy_koster.protocol.ruling import Heading, Ruling, Standard
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.protocol.step import Obey, Pass, Refuse, Settled
from scrapy_koster.protocol.usage import Origin, Statement
from scrapy_koster.protocol.verdict import Source, Verdict
from scrapy_koster.protocol.wording import because_of, shown, text_of

BODY = b"User-agent: fig\nUser-agent: tree\nDisallow: /org/plans.html\n"
COPY = CachedRobots("https://fict.org/robots.txt", 200, BODY, None, None, 1e9, 1e9 + 604800)
HTML = replace(COPY, body=b"<html><body>Not found")
FAILURE = FetchFailure("HTTP 503", 3, since=1e9, asked=1e9 + 20, retry=1e9 + 60, stale=None)
HEADING = Heading([Line(1, b"user-agent", b"fig"), Line(2, b"user-agent", b"tree")])
RULE = Line(3, b"disallow", b"/org/plans.html")
RULED: dict[str, Any] = {"allowed": False, "section": "3.2.2", "record": HEADING, "rule": RULE}
FORBIDDEN = Verdict(
    **RULED,
    url="http://www.fict.org/org/plans.html",
    site=SITE,
    robot="fig",
    ground=Ground.RULE,
    known=COPY,
    source=Source.STORAGE,
)
BY_RFC_9309 = Ruling(
    allowed=False,
    section="2.2.3",
    record=Heading([Line(8, b"user-agent", b"fig")]),
    rule=Line(9, b"disallow", b"/*.html$"),
    standard=Standard.RFC_9309,
)
LINE = "line 3 'Disallow: /org/plans.html' in the group for fig, tree (line 1)"
LINE_9 = "line 9 'Disallow: /*.html$' in the group for fig (line 8); RFC 9309 2.2.3"
SLOW = Delay(90.5, Line(4, b"crawl-delay", b"90.5"))
HOSTILE = Line(3, b"disallow", b"/\x1b[2J\x00\xff\xc3\xbc" + b"x" * 100_000)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({}, f"{LINE}; draft 3.2.2", id="a rule"),
        pytest.param(
            {"allowed": True, "rule": None},
            "no rule of the group for fig, tree (line 1) applies; draft 3.2.2",
            id="no rule",
        ),
        pytest.param(
            {"section": "TheirParser", "record": None, "rule": None, "is_explained": False},
            "as TheirParser reads it, which names no line",
            id="a parser that cannot tell",
        ),
        pytest.param({"also": BY_RFC_9309}, f"{LINE}; draft 3.2.2, and {LINE_9}", id="both"),
        pytest.param(
            {"also": Ruling(**RULED | {"standard": Standard.RFC_9309, "section": "2.2.2"})},
            f"{LINE}; draft 3.2.2, RFC 9309 2.2.2",
            id="both by one line",
        ),
        pytest.param(
            {"ground": Ground.RESTRICTED, "known": replace(COPY, status=403), "section": "3.1"},
            "its robots.txt answered 403, which closes the site (KOSTER_RESTRICTED)",
            id="restricted",
        ),
        pytest.param(
            {"ground": Ground.UNAVAILABLE, "known": FAILURE, "section": "3.1"},
            "http://www.fict.org/robots.txt could not be fetched in 3 attempts (HTTP 503), last at"
            " 2001-09-09T01:47:00Z by another process",
            id="unavailable, by the storage",
        ),
        pytest.param(
            {"ground": Ground.UNAVAILABLE, "known": replace(FAILURE, attempts=0)},
            "http://www.fict.org/robots.txt was not fetched (HTTP 503)",
            id="no attempt",
        ),
        pytest.param(
            {"ground": Ground.UNRESTRICTED, "known": replace(COPY, status=403), "allowed": True},
            "its robots.txt answered 403, which opens the site (KOSTER_RESTRICTED)",
            id="403 by RFC 9309",
        ),
        pytest.param(
            {"ground": Ground.MISSING, "section": "3.1"},
            "its robots.txt answered 200 without a record, which closes the site (KOSTER_MISSING)",
            id="no record",
        ),
        pytest.param(
            {"rule": HOSTILE},
            f"line 3 'Disallow: /\\x1b[2J\\x00\\xffü{'x' * 170}...' in the group for fig,"
            " tree (line 1); draft 3.2.2",
            id="hostile",
        ),
    ],
)
def test_a_verdict_says_why_in_one_line(changes: dict[str, Any], said: str) -> None:
    verdict = replace(FORBIDDEN, **changes)
    may = f"{'allowed' if verdict.allowed else 'forbidden'} by {COPY.url}"
    assert (
        str(verdict) == f"{may if isinstance(verdict.known, CachedRobots) else 'refused'}: {said}"
    )
    assert verdict.because() == said


IN_JSON: dict[str, Any] = {
    "url": "http://www.fict.org/org/plans.html",
    "sent_as": None,
    "site": "http://www.fict.org",
    "robot": "fig",
    "names": [],
    "allowed": False,
    "ground": "rule",
    "standard": "draft",
    "section": "3.2.2",
    "misspelt": False,
    "because": FORBIDDEN.because(),
    "line": 3,
    "rule": "Disallow: /org/plans.html",
    "record": {"line": 1, "agents": ["fig", "tree"]},
    "crawl_delay": None,
    "also": None,
    "robots_url": "https://fict.org/robots.txt",
    "status": 200,
    "digest": COPY.digest,
    "record_id": None,
    "fetched": "2001-09-09T01:46:40Z",
    "expires": "2001-09-16T01:46:40Z",
    "override": None,
    "reason": None,
    "retry": None,
    "source": "storage",
}


@pytest.mark.parametrize(
    ("changes", "differing"),
    [
        pytest.param({}, {}, id="a rule"),
        pytest.param(
            {"also": BY_RFC_9309},
            {
                "also": {
                    "allowed": False,
                    "section": "2.2.3",
                    "because": LINE_9,
                    "line": 9,
                    "rule": "Disallow: /*.html$",
                    "record": {"line": 8, "agents": ["fig"]},
                }
            },
            id="both forbid it",
        ),
        pytest.param(
            {"known": FAILURE, "ground": Ground.UNAVAILABLE},
            {
                "ground": "unavailable",
                "robots_url": "http://www.fict.org/robots.txt",
                "status": None,
                "digest": None,
                "fetched": None,
                "expires": None,
                "reason": "HTTP 503",
                "retry": "2001-09-09T01:47:40Z",
            },
            id="unavailable",
        ),
    ],
)
def test_a_verdict_says_why_in_json(changes: dict[str, Any], differing: dict[str, Any]) -> None:
    other = replace(FORBIDDEN, **changes)
    verdict = other.to_dict()
    assert verdict == IN_JSON | {"because": other.because()} | differing
    assert json.loads(json.dumps(verdict)) == verdict


@pytest.mark.parametrize(
    ("body", "misspelt", "said"),
    [
        (b"User-agent: fig\nAllow: /org/", False, "draft only; RFC 9309 allows it (line 2 'Allow:"),
        (b"User-agent: *\nDisallow: /a", True, "corrected; RFC 9309 allows it (no rule applies)"),
        (b"User-agent: a\nDisallow: /a", False, "RFC 9309 allows it (no group for fig)"),
    ],
)
def test_a_refusal_that_rfc_9309_allows_names_both(body: bytes, misspelt: bool, said: str) -> None:
    ruling = Ruling(**RULED, is_misspelt=misspelt)
    told = because_of(ruling, "fig", Rfc9309(body).ruling(FORBIDDEN.url, "fig"))
    assert told.startswith(LINE)
    assert said in told


@given(st.binary(), st.integers(3, 40))
def test_octets_are_shown_harmless_and_bounded(octets: bytes, limit: int) -> None:
    for text in (shown(octets, limit), text_of(Line(1, octets, octets), limit)):
        assert text.isprintable()
        assert len(text) <= limit


class YesOrNo:
    """A parser that cannot tell why."""

    def allowed(self, url: str, robot: str | bytes, /) -> bool:
        return RobotsTxt(BODY).allowed(url, robot)


def test_a_verdict_on_a_url_is_what_the_file_says() -> None:
    assert judged("/org/plans.html", Obey(COPY, 0), RobotsTxt(BODY)) == FORBIDDEN
    assert judged("/", Obey(COPY, 0), RobotsTxt(BODY)).allowed
    assert not judged("/", Obey(COPY, 0), None).allowed  # rules, and nobody to read them


def test_the_first_spelling_that_is_forbidden_decides() -> None:
    url = f"{SITE}/x/../org/plans.html;y"
    verdict = judged("/x/../org/plans.html;y", Obey(COPY, 0), RobotsTxt(BODY))
    assert verdict == replace(FORBIDDEN, url=url, spelling=f"{SITE}/org/plans.html;y")
    assert verdict.to_dict()["sent_as"] == f"{SITE}/org/plans.html;y"


@pytest.mark.parametrize(("path", "allowed"), [("/", True), ("/org/plans.html", False)])
def test_a_parser_that_cannot_tell_why_decides_too(path: str, allowed: bool) -> None:
    verdict = judged(path, Obey(COPY, 0), YesOrNo())
    assert (verdict.allowed, verdict.section, verdict.rule) == (allowed, "YesOrNo", None)
    assert not verdict.is_explained


class Mistaken(YesOrNo):
    def ruling(self, url: str, robot: str | bytes, /) -> str:
        return f"{robot!r} may not fetch {url}"


def test_a_ruling_of_another_type_is_a_defect_of_the_parser() -> None:
    with pytest.raises(ParserDefectError, match=r"ruling\(\) .* a Ruling"):
        judged("/org/plans.html", Obey(COPY, 0), Mistaken())


class Contradicting(YesOrNo):
    def ruling(self, _url: str, _robot: str | bytes, /) -> Ruling:
        return Ruling(allowed=True, section="3.2.2", record=HEADING, rule=None)


def test_a_ruling_does_not_open_what_is_forbidden() -> None:
    verdict = judged("/org/plans.html", Obey(COPY, 0), Contradicting())
    assert (verdict.allowed, verdict.record) == (False, HEADING)
    assert judged("/", Obey(COPY, 0), Contradicting()).allowed


# A delay that is too long.

TOO_LONG = "which is longer than KOSTER_CRAWL_DELAY_MAX_SECS"


@pytest.mark.parametrize("step", [Obey(COPY, 0), Pass(FAILURE, 0)], ids=["known", "passed"])
@pytest.mark.parametrize(
    "parser",
    [RobotsTxt(BODY), Strictest(BODY), YesOrNo()],
    ids=lambda parser: type(parser).__name__,
)
def test_what_the_rules_allow_is_forbidden_by_a_delay(step: Settled, parser: object) -> None:
    verdict = judged("/", step, parser, too_long=SLOW)
    assert (verdict.allowed, verdict.ground, verdict.section) == (False, Ground.DELAY, "3.2")
    by_rfc9309 = judged("/", step, parser, Policy(standard=Standard.RFC_9309), too_long=SLOW)
    assert (by_rfc9309.standard, by_rfc9309.section) == (Standard.RFC_9309, "2.2.4")
    assert (verdict.delay, verdict.rule, verdict.record) == (SLOW, SLOW.line, None)
    assert verdict.because() == f"line 4 'Crawl-delay: 90.5', {TOO_LONG}"


def test_a_statement_that_disallows_a_purpose() -> None:
    stated = Statement(origin=Origin.ROBOTS_TXT, text="Content-Usage: train-ai=n", line=4)
    verdict = judged("/", Obey(COPY, 0), RobotsTxt(BODY), stated=stated)
    assert (verdict.allowed, verdict.ground, verdict.line) == (False, Ground.USAGE, 4)
    assert "line 4 'Content-Usage: train-ai=n' of robots.txt, which disallows a use" in str(verdict)
    assert judged("/org/plans.html", Obey(COPY, 0), RobotsTxt(BODY), stated=stated).stated is None


def test_a_delay_without_a_line() -> None:
    verdict = judged("/", Obey(COPY, 0), YesOrNo(), too_long=Delay(90.5, None))
    assert str(verdict).endswith(f": it asks for 90.5 s between two visits, {TOO_LONG}")
    assert verdict.ruling is verdict
    told = verdict.to_dict()
    assert (told["standard"], told["crawl_delay"]["line"]) == (None, None)


OPEN, CLOSED = {"restricted": Restricted.ALLOW}, {"restricted": Restricted.DISALLOW}


@pytest.mark.parametrize(
    ("step", "settings", "allowed", "ground", "section"),
    [
        (Obey(replace(COPY, status=404), 0), {}, True, Ground.UNRESTRICTED, "2.3.1.3"),
        (Obey(replace(COPY, status=403), 0), OPEN, True, Ground.UNRESTRICTED, "2.3.1.3"),
        (Obey(replace(COPY, status=403), 0), CLOSED, False, Ground.RESTRICTED, "3.1"),
        (Obey(HTML, 0), {"missing": Missing.DISALLOW}, False, Ground.MISSING, "2.3.1.1"),
        (Obey(HTML, 0), {"html": Html.DISALLOW}, False, Ground.HTML, "2.3.1.1"),
        (Pass(FAILURE, 0), {}, True, Ground.UNAVAILABLE, "2.3.1.4"),
        (Refuse(FAILURE, 0), {}, False, Ground.UNAVAILABLE, "2.3.1.4"),
    ],
)
@pytest.mark.parametrize("standard", Standard)
def test_without_rules(
    step: Settled,
    settings: dict[str, Any],
    *,
    allowed: bool,
    ground: Ground,
    section: str,
    standard: Standard,
) -> None:
    """The standard of the parser decides, and after 401 and 403 the standard that does so."""
    policy = Policy(standard=standard, **settings)
    verdict = judged("/x", step, None, policy)
    is_draft = section == "3.1" or (standard is Standard.DRAFT and settings is not OPEN)
    decided = (Standard.DRAFT, "3.1") if is_draft else (Standard.RFC_9309, section)
    assert (verdict.allowed, verdict.ground) == (allowed, ground)
    assert (verdict.standard, verdict.section) == decided
    assert verdict.is_explained
    assert judged("/robots.txt", step, None, policy).allowed
    assert judged("/robots.txt;", step, None, policy).allowed is allowed


def test_a_page_in_place_of_a_file_is_named() -> None:
    verdict = judged("/x", Obey(HTML, 0), None, Policy(html=Html.DISALLOW))
    assert "robots.txt answered 200 with an HTML page, which closes the site" in str(verdict)


@pytest.mark.parametrize("error", [RobotsForbidden, RobotsUnavailable])
def test_what_reaches_an_errback_is_short_and_printable(
    error: type[RobotsForbidden | RobotsUnavailable],
) -> None:
    copy = replace(COPY, url=f"https://fict.org/\x1b{'x' * 100_000}", body=b"\x1bx" * 100_000)
    failure = replace(FAILURE, stale=copy)
    agents = [Line(n, b"user-agent", b"\x1b" * 5000) for n in range(100)]
    for known in (copy, failure):
        verdict = replace(
            FORBIDDEN, url="http://h/\x1b" + "x" * 100_000, known=known, record=Heading(agents),
            rule=HOSTILE,
        )  # fmt: skip
        told = [repr(error(verdict)), str(error(verdict)), repr(Failure(error(verdict)))]
        for text in (*told, repr(verdict), repr(known)):
            assert len(text) < 1200
            assert text.isprintable()
        assert "http://h/" in repr(error(verdict))


def test_an_answer_is_shown_without_its_body() -> None:
    url, body = "http://h/\x1b", b"x" * 100_000
    answer = Answer(url, 200, {"etag": "x" * 100_000}, body)
    exchange = Exchange(url, 0.0, (), 200, (), body, False, None, None, digest_of(body))
    assert repr(answer) == repr(exchange) == r"<200 http://h/\x1b, 100000 bytes>"
    assert is_digest(exchange.digest)
    assert not is_digest("sha256:")


def test_what_reaches_an_errback_can_be_pickled() -> None:
    error = RobotsForbidden(FORBIDDEN)
    assert pickle.loads(pickle.dumps(error)).verdict == FORBIDDEN
