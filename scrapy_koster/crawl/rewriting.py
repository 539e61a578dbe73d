"""What download handlers may make of a URL before they send it.

Scrapy's handler for HTTP/1.1 sends a URL as it is. Those that crawls without a
reactor have, and others that are to be had, hand it to a library that tidies it
up: /x/../secret is sent as /secret.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler

_VERBATIM = "scrapy.core.downloader.handlers.http11"

_ENCODED_DOT = re.compile("%2e", re.IGNORECASE)
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)


def may_rewrite(crawler: Crawler) -> bool:
    """Whether a download handler of *crawler* is one that may rewrite a URL."""
    handlers = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
    used = [handlers.get(scheme) for scheme in ("http", "https")]
    return any(load_object(each).__module__ != _VERBATIM for each in used if each is not None)


def sent_as(url: str) -> Iterator[str]:
    """Yield *url*, and what it may be sent as where that is another path to the draft (3.2.2).

    Segments of dots are resolved (RFC 3986, 5.2.4), encoded dots too or not,
    the last one with or without its slash. An encoded slash in the query is
    decoded: the one change to an escape that C3 does not undo.
    """
    yield url
    if "/." not in url and "%2" not in url:
        return
    head, mark, query = url.partition("#")[0].partition("?")
    start = head.find("/", head.find("//") + 2)
    origin, path = (head, "/") if start < 0 else (head[:start], head[start:])
    queries = dict.fromkeys([mark + query, mark + _ENCODED_SLASH.sub("/", query)])
    decoded = _ENCODED_DOT.sub(".", path)
    for resolved in dict.fromkeys([*_without_dots(path), *_without_dots(decoded)]):
        for sent in queries:
            yield origin + resolved + sent


def _without_dots(path: str) -> Iterator[str]:
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    yield "/" + "/".join(kept)
    if segments and segments[-1] in (".", ".."):
        yield "/" + "/".join([*kept, ""])
