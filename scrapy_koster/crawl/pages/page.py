"""The parts of a response that META tags are read from, and the names of the robot."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse, Response, TextResponse, XmlResponse

from scrapy_koster.crawl.robot import sent_user_agent
from scrapy_koster.protocol.nametoken import joined, names_of

if TYPE_CHECKING:
    from scrapy import Request

_XHTML = b"http://www.w3.org/1999/xhtml"
_XHTML_WITHIN_BYTES = 1024
_NUL_WITHIN_BYTES = 256

_names_of = lru_cache(maxsize=1000)(names_of)


def tokens_of(request: Request, token: str | None) -> tuple[str, ...]:
    """Return the names of the robot in META tags. *token* is the name in the settings, if any."""
    said = request.meta.get("robotstxt_user_agent")
    robot = (joined(said) if said else None) or token
    # The page answers the robot in the sent header.
    return _names_of(robot or sent_user_agent(request.headers))


def may_have_metas(response: Response) -> bool:
    """Return whether *response* is HTML or XHTML."""
    if isinstance(response, HtmlResponse):
        return True
    return isinstance(response, XmlResponse) and _XHTML in response.body[:_XHTML_WITHIN_BYTES]


def octets_of(response: Response) -> bytes:
    """Return the page in an ASCII-compatible encoding. UTF-16 and UTF-32 are converted."""
    # For other names of encodings in a page, Python's codecs may raise.
    body = response.body
    if (
        b"\0" in body[:_NUL_WITHIN_BYTES]
        and isinstance(response, TextResponse)
        and response.encoding.startswith(("utf-16", "utf-32"))
    ):
        return response.text.encode("utf-8", "replace")
    return body
