"""Recorded exceptions to the robots.txt of single sites: what they decide, and until when."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timezone
from typing import Any

import pytest
from harness.verdicts import POLICY, judged

from scrapy_koster.protocol.access import CachedRobots, FetchFailure
from scrapy_koster.protocol.override import Override, choice, current, overrides_of
from scrapy_koster.protocol.policy import Missing, Policy, Restricted, Unavailable
from scrapy_koster.protocol.reading import Strictest
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.protocol.step import Obey, Pass, Refuse, Settled, step_between
from scrapy_koster.protocol.verdict import Verdict

SITE = Site("https", "a.example", 443)
UNTIL = date(2026, 12, 31)
NOON = datetime(2026, 11, 22, 12, tzinfo=timezone.utc).timestamp()
BODY = b"User-agent: *\nDisallow: /private\nDisallow: /p\nAllow: /\n"


def override(**given: Any) -> Override:
    return Override(site=SITE, until=UNTIL, reason="the owner agreed", **given)


@pytest.mark.parametrize(
    ("path", "allow", "disallow", "decided"),
    [
        ("/private/a", ["/private"], [], True),
        ("/private/a", ["/private/a"], ["/private"], True),
        ("/private", ["/private"], ["/private"], False),
        ("/%7Ea", ["/~a"], [], True),
        ("/a%2Fb", ["/a/"], [], None),
        ("/\u00e9", ["/%C3%A9"], [], True),
        ("/robots.txt", [], ["/"], None),
    ],
)
def test_the_longest_path_wins(
    path: str, allow: list[str], disallow: list[str], decided: bool | None
) -> None:
    entries = [
        {"site": str(SITE), key: paths, "reason": "so", "until": "2026-12-31"}
        for key, paths in (("allow", allow), ("disallow", disallow))
        if paths
    ]
    for ordered in (entries, entries[::-1]):
        chosen = choice(f"{SITE}{path}", overrides_of(ordered))
        assert (chosen[0] if chosen else None) is decided


def test_each_is_for_one_site_until_the_end_of_its_last_day() -> None:
    entry = override(allow=("/",))
    end = datetime(2027, 1, 1, tzinfo=timezone.utc).timestamp()
    assert entry.ends == end
    assert current((entry,), SITE, end - 0.001) == [entry]
    assert current((entry,), SITE, end) == []
    assert current(overrides_of([ENTRY]), SITE, NOON)[0].until == UNTIL
    for other in (Site("http", "a.example", 80), Site("https", "b.a.example", 443)):
        assert current((entry,), other, NOON) == []


ENTRY = {"site": str(SITE), "allow": ["/"], "reason": "x", "until": UNTIL}
OPEN = {"unavailable": "allow"}
WRONG: tuple[tuple[Any, str], ...] = (
    ([{}, 3], r"entry 1, \{\}: it has no \"site\""),
    (
        [
            {"site": "https://a.example", "allow": ["/"], "reason": "x", "until": "2099-01-01"},
            "\x1b",
        ],
        r"entry 2, '\\x1b': it is not a dictionary",
    ),
    (3, "it is not a list of entries"),
    ([ENTRY | {"x": 1}], "'x' is not a key of an entry"),
    ([{**ENTRY, "allow": []}], 'it has neither "allow" nor "disallow" nor "unavailable"'),
    ([ENTRY | {"unavailable": True}], '"unavailable" is True, and not "allow"'),
    ([ENTRY | {"site": "https://a.example/b"}], "is not the origin of one site"),
    ([ENTRY | {"allow": "/"}], '"allow" is not a list of paths'),
    ([ENTRY | {"allow": ["/*"]}], "is not the beginning of a path"),
    ([ENTRY | {"reason": " "}], "is no text"),
    ([ENTRY | {"until": NOON}], "is not a date such as"),
)


@pytest.mark.parametrize(("entries", "wrong"), WRONG)
def test_a_wrong_one_is_named(entries: Any, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong) as caught:
        overrides_of(entries)
    assert str(caught.value).isprintable()


# In a verdict.

COPY = CachedRobots(f"{SITE}/robots.txt", 200, BODY, None, None, 0, 1)
FAILURE = FetchFailure("HTTP 503", 1, 0, 0, 1, None)
OPENED = override(allow=("/private",))
CLOSED = override(disallow=("/open",))


def told(path: str, step: Settled, *overrides: Override, policy: Policy = POLICY) -> Verdict:
    parser = Strictest(BODY) if isinstance(step, Obey) and step.copy is COPY else None
    return judged(path, step, parser, policy, site=SITE, overrides=overrides)


def test_one_that_allows() -> None:
    verdict = told("/private/a", Obey(COPY, 1), OPENED)
    assert verdict.allowed
    assert verdict.ground is Ground.OVERRIDE
    assert verdict.line == 2
    assert verdict.override is OPENED
    assert str(verdict) == (
        "allowed by your override: the owner agreed, until 2026-12-31; the site's line 2 forbids it"
    )
    assert verdict.to_dict()["override"] == {
        "site": "https://a.example", "reason": "the owner agreed", "until": "2026-12-31",
    }  # fmt: skip


def test_each_spelling_has_to_be_allowed() -> None:
    # Some download handlers send "/private/../x" as "/x".
    assert told("/x/../private/a", Obey(COPY, 1), OPENED).override is OPENED
    forbidden = told("/private/../p", Obey(COPY, 1), OPENED)
    assert not forbidden.allowed
    assert forbidden.override is None


MISSING = CachedRobots(f"{SITE}/robots.txt", 404, b"", None, None, 0, 1)


@pytest.mark.parametrize(
    ("step", "policy", "allowed", "because"),
    [
        (Obey(MISSING, 1), Policy(), False, "without it this would be allowed"),
        (Pass(FAILURE, 1), Policy(), False, "without it this would be allowed"),
        (Obey(MISSING, 1), Policy(missing=Missing.DISALLOW), True, "without it"),
    ],
    ids=["no robots.txt", "let through", "KOSTER_MISSING"],
)
def test_a_site_without_rules(step: Settled, policy: Policy, allowed: bool, because: str) -> None:
    verdict = told("/private" if allowed else "/open", step, OPENED, CLOSED, policy=policy)
    assert verdict.allowed is allowed
    assert verdict.ground is Ground.OVERRIDE
    assert because in verdict.because()


SHUT = Obey(CachedRobots(COPY.url, 403, b"", None, None, 0, 1), 1)
PASSED = step_between(
    FAILURE, now=NOON, policy=Policy(overrides=overrides_of([ENTRY | OPEN])).at(SITE, NOON)
)
OPENING, PARTLY = override(opens=True), override(opens=True, disallow=("/private",))


@pytest.mark.parametrize(
    ("step", "ground", "entries"),
    [
        (SHUT, Ground.RESTRICTED, [override(allow=("/",))]),
        (SHUT, Ground.RESTRICTED, [PARTLY]),
        (PASSED, Ground.UNAVAILABLE, []),  # it has expired meanwhile
        (PASSED, Ground.UNAVAILABLE, [PARTLY]),
        (Refuse(FAILURE, 1), Ground.UNAVAILABLE, [override(allow=("/",)), OPENING]),
    ],
)
def test_a_site_that_is_closed_stays_closed(
    step: Settled, ground: Ground, entries: list[Override]
) -> None:
    verdict = told("/private", step, *entries)
    assert verdict == told("/private", step)
    assert (verdict.allowed, verdict.ground) == (False, ground)


def test_one_that_opens_a_closed_site_changes_no_rule() -> None:
    assert told("/private", Obey(COPY, 1), OPENING) == told("/private", Obey(COPY, 1))
    lenient = Policy(restricted=Restricted.ALLOW, unavailable=Unavailable.ALLOW)
    for step in (SHUT, step_between(FAILURE, now=NOON, policy=lenient)):
        assert told("/open", step, OPENING, policy=lenient).override is None


def test_one_opens_no_site_for_which_the_crawl_has_a_defect() -> None:
    policy = Policy(overrides=(OPENING,)).at(SITE, NOON)
    failure = replace(FAILURE, is_defect=True)
    assert isinstance(step_between(failure, now=NOON, policy=policy), Refuse)
