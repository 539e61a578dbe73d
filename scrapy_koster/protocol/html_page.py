"""HTML pages in place of a /robots.txt."""

import re
from functools import lru_cache

from scrapy_koster.protocol.line import narrow
from scrapy_koster.protocol.records import has_record

# No line of a robots.txt begins with "<". A page may begin with text, such as "Error 404".
_SPACE = r"[\s\ufeff]*"
_BEGINS_WITH_TAG = re.compile(f"{_SPACE}<")
_LINE_OF_PAGE = re.compile(r"[\r\n][ \t]*<(?:html|!doctype)\b", re.IGNORECASE)
_LOOKED_AT = 1000

# Patterns for challenge pages, by product: only in tags, in the title and at the start of scripts,
# because an article about a product has the name in its text. Ordinary pages from Cloudflare,
# Imperva or DataDome have other scripts of these companies.
_TAG = rb"<[a-z]+\b[^<>]{0,600}"
_SCRIPT = rb"<script\b[^<>]{0,300}>[^<]{0,600}"
_PRODUCTS = {
    "Akamai": _TAG + rb"\bid=.sec-(?:if-)?cpt-(?:if|container)|\"sec-cp-challenge\"",
    "Anubis": _TAG + rb"(?:\bid=.anubis_(?:challenge|version)|/\.within\.website/x/cmd/anubis/)",
    "AWS WAF": _SCRIPT + rb"\bgokuProps\b",
    "Cloudflare": _SCRIPT + rb"\b_cf_chl_opt\b",
    "DataDome": _TAG + rb"//(?:ct|geo)\.captcha-delivery\.com/",
    "DDoS-Guard": _TAG + rb"/\.well-known/ddos-guard/(?:js-challenge|check)",
    "go-away": _TAG + rb"/\.well-known/\.git\.gammaspectra\.live/git/go-away/",
    "HUMAN": _TAG + rb"\bid=.px-captcha",
    "Imperva": rb"<iframe\b[^<>]{0,600}/_Incapsula_Resource\?",
    "SiteGround": _TAG + rb"/\.well-known/sgcaptcha/",
    "Sucuri": _SCRIPT + rb"\bsucuri_cloudproxy_js\b",
    "Vercel": rb"<title>\s*Vercel Security Checkpoint\s*</title>",
}
_CHALLENGES = {name: re.compile(each, re.IGNORECASE) for name, each in _PRODUCTS.items()}

# The invisible parts of a page. A part without an end does not match, so the
# time is linear in the length of the page.
_UNSEEN = re.compile(
    rb"(?:\s+|<!--.*?-->|<[!?](?!--)[^>]*>|</?(?:html|head|body)\b[^>]*>"
    rb"|<(?P<meta>meta\b[^>]*)>|<title\b[^>]*>[^<]*</title\s*>"
    rb"|<(?P<script>script)\b[^>]*>.*?</script\s*>|<noscript\b[^>]*>.*?</noscript\s*>)",
    re.IGNORECASE | re.DOTALL,
)
_REFRESH = re.compile(rb"http-equiv\s*=\s*[\"']?\s*refresh\b", re.IGNORECASE)


ORDINARY = "an HTML page"
"""The result of ``page_in_place`` for a page that is not a challenge page."""


def is_html(body: bytes) -> bool:
    """Whether a file begins like an HTML page. Such a file can have rules, too."""
    if b"<" not in body:  # for speed
        return False
    text = narrow(body).decode("utf-8", "replace")
    return bool(_BEGINS_WITH_TAG.match(text) or _LINE_OF_PAGE.search(text[:_LOOKED_AT]))


@lru_cache(maxsize=16)  # called for every request
def page_in_place(body: bytes) -> str | None:
    """Return the kind of an HTML page without a record, or None for any other file."""
    if not is_html(body) or has_record(body):
        return None
    html = narrow(body).removeprefix(b"\xef\xbb\xbf")
    challenge = challenge_in(html) or _only(html)
    return f"a challenge page ({challenge})" if challenge else ORDINARY


def challenge_in(html: bytes) -> str | None:
    """Return the product of a challenge page, or None for a page of no product."""
    return next((name for name, each in _CHALLENGES.items() if each.search(html)), None)


def _only(html: bytes) -> str:
    """Return "only a script" or "only a refresh" for a page without visible text, or ""."""
    found, position = "", 0
    while part := _UNSEEN.match(html, position):
        position = part.end()
        if part["script"]:
            found = found or "only a script"
        elif part["meta"] and _REFRESH.search(part["meta"]):
            found = "only a refresh"
    return found if position == len(html) else ""
