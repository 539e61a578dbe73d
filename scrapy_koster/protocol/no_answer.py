"""Responses to GET /robots.txt that are no answer of the site: challenges, errors of a proxy."""

from __future__ import annotations

import re
from typing import Any

from scrapy_koster.protocol.html_page import challenge_in
from scrapy_koster.protocol.printable import printable

# The header fields of challenges, each with the words in the value. AWS WAF, Cloudflare, Vercel,
# SiteGround and DataDome document these fields: pages that a robot gets without a challenge do not
# have them. DataDome sends "x-dd-b" with a challenge in JSON, to robots that accept any type.
_CHALLENGES = {
    "x-amzn-waf-action": re.compile("challenge|captcha"),
    "cf-mitigated": re.compile("challenge"),
    "x-vercel-mitigated": re.compile("challenge"),
    "sg-captcha": re.compile("challenge"),
    "x-dd-b": re.compile("."),
}
# Fields in which a proxy says that the response is an error of its own: of Squid, Zyte Smart Proxy
# Manager and Zyte API.
_OF_PROXIES = ("X-Squid-Error", "X-Crawlera-Error", "Zyte-Error-Type")
# RFC 9209, 2.1.1: an intermediary with "error" made the response itself. A text in quotes may end
# nowhere, which keeps the time linear.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"?')
_ERROR = re.compile(r";[ \t]*error\b")
_CHARS = 100


def why_no_answer(answer: Any) -> str | None:
    """Return the reason why *answer*, an ``access.Answer``, is no answer of the site, or None.

    Such a response is a temporary failure: another request, or a request without the proxy, may
    get the file.
    """
    headers = answer.headers
    for name, words in _CHALLENGES.items():
        if words.search(headers.get(name, "").lower()):
            return f"HTTP {answer.status}, a challenge ({_field(name, headers[name])})"
    for name in _OF_PROXIES:
        if name.lower() in headers:
            error = _field(name, headers[name.lower()])
            return f"HTTP {answer.status}, {error}{_by(answer, headers.get('via', ''))}"
    if _ERROR.search(_QUOTED.sub("", status := headers.get("proxy-status", ""))):
        return f"HTTP {answer.status}, {_field('Proxy-Status', status)}"
    # Of a 2xx, ``page_in_place`` finds the challenge page, unless there are rules around it.
    product = None if 200 <= answer.status <= 299 else challenge_in(answer.body)
    return product and f"HTTP {answer.status}, a challenge page ({product})"


def _by(answer: Any, via: str) -> str:
    """Return the name of the proxy from *via*, if the crawl does not know its proxy."""
    return f", by the proxy {printable(via, _CHARS)}" if via and not answer.proxy else ""


def _field(name: str, value: str) -> str:
    return f"{name} {printable(value, _CHARS)}"
