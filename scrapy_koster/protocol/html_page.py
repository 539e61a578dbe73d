"""Whether what a site answers for its /robots.txt is an HTML page, by how it begins."""

from __future__ import annotations

import re

from scrapy_koster.protocol.line import narrow

_HTML = re.compile(
    rb"\s*<(?:!--|(?:!doctype|\?xml|html|head|title|meta|link|script|style|body|div|h1|p)\b)",
    re.IGNORECASE,
)


def is_html(body: bytes) -> bool:
    """Whether a file begins as an HTML page does. It may have rules all the same."""
    start = narrow(body[:4000])
    return _HTML.match(start.removeprefix(b"\xef\xbb\xbf")[:1000]) is not None
