"""Responses that are no answer of the site: a later request may get the file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from harness.challenge_pages import CHALLENGES, CLOUDFLARE

from scrapy_koster.protocol.access import (
    Answer,
    CachedRobots,
    FetchFailure,
    after_answer,
    redirect_target,
)
from scrapy_koster.protocol.policy import Html, Policy, Restricted
from scrapy_koster.protocol.step import Ask, next_step

URL, RULES = "https://fict.org/robots.txt", "User-agent: *\nDisallow: /x\n"
AWS, CF = "x-amzn-waf-action", "cf-mitigated"
DENIED = "<html><title>ERROR: The requested URL could not be retrieved</title><p>Access Denied.</p>"
SEC_CPT = (
    '{"sec-cp-challenge": "true","provider":"crypto","branding_url_content":"/_sec/cp_1_0.htm"}'
)

DATADOME = '{"url":"https://geo.captcha-delivery.com/interstitial/?initialCid=x&hash=y&dm=cd"}'

# Rebuilt from the documentation of each product.
REAL = [
    pytest.param(202, {AWS: "challenge", "server": "CloudFront"}, "", id="AWS WAF challenge"),
    pytest.param(405, {AWS: "captcha", "server": "CloudFront"}, "<p>x</p>", id="AWS WAF captcha"),
    pytest.param(403, {CF: "challenge", "server": "cloudflare"}, CLOUDFLARE, id="Cloudflare 403"),
    pytest.param(429, {CF: "challenge", "retry-after": "9"}, CLOUDFLARE, id="Cloudflare 429"),
    pytest.param(503, {CF: "challenge", "server": "cloudflare"}, CLOUDFLARE, id="Cloudflare 503"),
    pytest.param(403, {"x-vercel-mitigated": "challenge"}, CHALLENGES["Vercel"], id="Vercel"),
    pytest.param(202, {"sg-captcha": "challenge"}, CHALLENGES["SiteGround"], id="SiteGround"),
    pytest.param(403, {"x-datadome": "protected"}, CHALLENGES["DataDome"], id="DataDome"),
    pytest.param(403, {"x-datadome": "protected", "x-dd-b": "1"}, DATADOME, id="DataDome, JSON"),
    pytest.param(403, {}, CHALLENGES["HUMAN"], id="HUMAN"),
    pytest.param(403, {"x-iinfo": "1-2-0"}, CHALLENGES["Imperva"], id="Imperva"),
    pytest.param(428, {"content-type": "application/json"}, SEC_CPT, id="Akamai"),
    pytest.param(405, {"server": "ddos-guard"}, CHALLENGES["DDoS-Guard"], id="DDoS-Guard"),
]
PROXIED = [
    pytest.param(403, {"x-squid-error": "ERR_ACCESS_DENIED 0"}, DENIED, id="Squid"),
    pytest.param(404, {"x-squid-error": "ERR_DNS_FAIL 0"}, DENIED, id="Squid 404"),
    pytest.param(200, {"x-squid-error": "ERR_X 0"}, RULES, id="Squid 200"),
    pytest.param(304, {"x-squid-error": "ERR_X 0"}, "", id="Squid 304"),
    pytest.param(302, {"x-squid-error": "403", "location": "/login"}, "", id="deny_info"),
    pytest.param(403, {"zyte-error-type": "/auth/account-suspended"}, "{}", id="Zyte API"),
    pytest.param(400, {"x-crawlera-error": "bad_session_id"}, "", id="Smart Proxy Manager"),
    pytest.param(403, {"proxy-status": "p.example; error=http_request_denied"}, "", id="9209"),
    pytest.param(404, {"proxy-status": 'a, "b;c" ;details="x\\"; y";error=e'}, "", id="second"),
    pytest.param(400, {"proxy-status": 'p; error="own error"'}, "", id="an error in quotes"),
]
UNSURE = [
    pytest.param(202, {}, "", id="empty"),
    pytest.param(202, {}, "Accepted\n# Disallow", id="prose"),
    pytest.param(202, {}, "<html><p>one moment: please</p>", id="a page"),
    pytest.param(202, {}, "<html><style>\n  color: red\n</style><p>x</p>", id="a page with style"),
]
ANSWERS = [
    pytest.param(202, {}, RULES, id="202 with rules"),
    pytest.param(202, {}, "Sitemap: https://fict.org/s.xml", id="202 with a sitemap"),
    pytest.param(204, {}, "", id="204"),
    pytest.param(200, {"proxy-status": "p.example; received-status=200"}, RULES, id="no error"),
    pytest.param(404, {"proxy-status": 'p; details="a; error=b'}, "", id="in quotes"),
    pytest.param(200, {CF: "", "x-dd-b": "", "via": "1.1 squid"}, RULES, id="empty fields"),
    pytest.param(404, {}, "<html><h1>Not found: gokuProps</h1>", id="404"),
    pytest.param(200, {}, RULES + "# " + CHALLENGES["HUMAN"], id="rules"),
]


def answer(status: int, headers: dict[str, str], body: str, proxy: str = "") -> Answer:
    return Answer(URL, status, headers, body.encode(), proxy=proxy)


@pytest.mark.parametrize(("status", "headers", "body"), [*REAL, *PROXIED, *UNSURE])
@pytest.mark.parametrize("policy", [Policy(), Policy(restricted=Restricted.ALLOW)])
def test_a_temporary_failure(
    status: int, headers: dict[str, str], body: str, policy: Policy
) -> None:
    """It neither opens nor closes the site, and the copy before it stays the last good one."""
    before = CachedRobots(URL, 200, RULES.encode(), '"x"', None, 0, 10)
    given = answer(status, headers, body)
    assert redirect_target(given) is None
    known = after_answer(given, before, now=20, policy=policy, jitter=0)
    assert isinstance(known, FetchFailure)
    assert known.reason.startswith(f"HTTP {status}")
    assert known.stale == before


@pytest.mark.parametrize(("status", "headers", "body"), PROXIED)
def test_the_proxy_is_named(status: int, headers: dict[str, str], body: str) -> None:
    given = answer(status, headers, body, proxy="proxy.example:3128")
    known = after_answer(given, None, now=20, policy=Policy(), jitter=0)
    assert isinstance(known, FetchFailure)
    assert known.reason.endswith(", through the proxy proxy.example:3128")
    unnamed = replace(given, proxy="", headers={**headers, "via": "1.1 cache (squid/6)"})
    known = after_answer(unnamed, None, now=20, policy=Policy(), jitter=0)
    assert isinstance(known, FetchFailure)
    assert ("by the proxy 1.1 cache (squid/6)" in known.reason) is ("proxy-status" not in headers)


@pytest.mark.parametrize(("status", "headers", "body"), ANSWERS)
def test_an_answer(status: int, headers: dict[str, str], body: str) -> None:
    known = after_answer(answer(status, headers, body), None, now=20, policy=Policy(), jitter=0)
    assert isinstance(known, CachedRobots)
    assert not isinstance(next_step(known, now=20, policy=Policy()), Ask)


@pytest.mark.parametrize("html", Html)
def test_a_stored_202_without_rules_is_fetched_again(html: Html) -> None:
    copy = CachedRobots(URL, 202, b"", None, None, 0, 1e9)
    assert isinstance(next_step(copy, now=20, policy=Policy(html=html)), Ask)
