"""What of a response is read for META tags, and to whom the page speaks."""

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
    """Return all names that a page speaks to; *token* is what the crawl has set, if anything."""
    said = request.meta.get("robotstxt_user_agent")
    robot = (joined(said) if said else None) or token
    # The header that was sent, whoever set it: it is to that robot that the page speaks.
    return _names_of(robot or sent_user_agent(request.headers))


def may_have_metas(response: Response) -> bool:
    """Return whether *response* is HTML or XHTML."""
    if isinstance(response, HtmlResponse):
        return True
    return isinstance(response, XmlResponse) and _XHTML in response.body[:_XHTML_WITHIN_BYTES]


def octets_of(response: Response) -> bytes:
    """Return the page in an encoding that has ASCII as it is: all that is not UTF-16 or 32."""
    # Not by any other name that the page gives: Python's codecs may raise.
    body = response.body
    if (
        b"\0" in body[:_NUL_WITHIN_BYTES]
        and isinstance(response, TextResponse)
        and response.encoding.startswith(("utf-16", "utf-32"))
    ):
        return response.text.encode("utf-8", "replace")
    return body
