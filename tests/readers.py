"""Whatever reads text from the network, and the pieces that its hostile texts are made of."""

from __future__ import annotations

from urllib.parse import clear_cache  # type: ignore[attr-defined]

from doubling import COUNTER, Reader

from scrapy_koster.checker.syntax import check
from scrapy_koster.parsers.strictest import StrictestRobotParser
from scrapy_koster.protocol.access import Answer, Policy, after_answer, redirect_target
from scrapy_koster.protocol.metatags import Syntax, part_to_read
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.robotsmeta import directives_of_headers, directives_of_page
from scrapy_koster.protocol.robotstxt import RobotsTxt, parse
from scrapy_koster.protocol.site import site_of

_ROBOTS = (
    "User-agent: *\n", "User-agent: figtree\n", "User-agent:", "user-agent", "Disallow: /",
    "Disallow:", "Allow: /", "Allow:/", "allow", "Crawl-delay: 1\n", "Sitemap:", "a:", ":", "\n",
    "\r", "\r\n", " ", "\t", " \t ", "#", "# ", "a", "/", "/a", "aa/", "*", "$", "%", "%4", "%41",
    "%2F", "%0A", "\0", "\x0b", "\x85", "\xff", "\xe2\x80\xa8", "<html>", "figtree", "fig*",
    f"User-agent: {COUNTER}\n", f"/{COUNTER}", f"a{COUNTER}:", COUNTER, "http://", "user agent",
)  # fmt: skip
_META = (
    "<", "<meta", "<meta ", "<META", "<meta\n", "<meta/", "</", "</meta", ">", "/>", "=", '"', "'",
    " ", "\n", "/", "name", "name=", 'name="', "name='", "name=robots ", "content=", 'content="',
    "content=none ", "robots", "figtree", "noindex", "none", "no", "&", "&amp;", "&#111;", "&#",
    "&#x6e", "1", "a", "a=", "a ", 'a="', "a='", " a=b", "b", ",", "<p>", "<p ", "<a ", "<title>",
    "</title>", "<style>", "</style>", "<script>", "</script>", "<script", "<!--", "-->", "--!>",
    "-", "<!", "<?", "?>", "<![CDATA[", "]]>", "<svg>", "</svg>", "<math>", "<mi>", "<desc>",
    "<template>", "</template>", "<plaintext>", "\0", "\x0c", f"a{COUNTER}", f"<a{COUNTER}>",
)  # fmt: skip
_TAG = (
    "a", "a:", ":", ": ", " :", " ", "\t", "\xa0", "\n ", ",", ", ", "noindex", "none", "figtree",
    "figtree:", "robots:", "*:", "googlebot:", "max-snippet", "max-snippet:", "max-snippet :",
    "max-image-preview:none", "unavailable_after:", "unavailable_after : ", "1", "12:", "-", ";",
    "\N{KELVIN SIGN}", COUNTER,
)  # fmt: skip
_FIELD = (
    ",", '"', '\\"', "\\", "=", '="', "a", " ", "\t", "no-cache", "max-age", "max-age=", "1", "9",
    "max-age=1", '"1"', ";", "(", ")", "-", "+", ":", "Sun", "Sun, ", "06", " Nov ", "1994 ",
    "00:00:00", "GMT", "-1", "\xff", "W/", COUNTER,
)  # fmt: skip
_URL = (
    "http://", "https:", "//", "/", "a", ".", "..", "/../", "/./", "../", "?", "#", ";", "@", ":",
    ":80", "[", "]", "[::1]", "%", "%2F", "%41", "%4", "&", "=", "\\", " ", "\t", "-", COUNTER,
)  # fmt: skip

_ROBOT = "figtree"
_CHECKED = RobotsTxt(
    b"User-agent: *\nDisallow: /a\nDisallow: /%41\nAllow: /aaaa\nDisallow: /aaaaaa"
)


def _decide(text: str) -> None:
    robots = RobotsTxt(text.encode("latin-1"))
    for path in ("/", "/a/a/a", "/" + "a" * 99, "/12345", "/%41%0A"):
        robots.allowed(f"http://h{path}", _ROBOT)


def _explain(text: str) -> None:
    robots = RobotsTxt(text.encode("latin-1"))
    for path in ("/", "/a/a/a", "/" + "a" * 99, "/12345", "/%41%0A"):
        str(robots.ruling(f"http://h{path}", _ROBOT).rule)


def _decide_twice(text: str) -> None:
    robots = StrictestRobotParser(text.encode())
    for path in ("/", "/a/a/a", "/" + "a" * 99):
        robots.allowed(f"http://h{path}", _ROBOT)


def _page(text: str, syntax: Syntax) -> None:
    octets = text.encode()
    directives_of_page(part_to_read(octets, _ROBOT), _ROBOT, syntax=syntax)
    directives_of_page(octets, _ROBOT, syntax=syntax)


def _answer(text: str) -> None:
    for name in ("cache-control", "expires", "date", "age", "etag", "last-modified", "retry-after"):
        for status in (200, 503):
            headers = {name: text} if name != "date" else {name: text, "expires": text}
            answer = Answer("http://h/robots.txt", status, headers)
            after_answer(answer, None, now=1e9, policy=Policy(), jitter=0.0)


def _redirect(text: str) -> None:
    clear_cache()  # of urlsplit
    for location in (text, f"http://{text}", f"/{text}"):
        redirect_target(Answer("http://h/a/b/robots.txt", 301, {"location": location}))


def _url(text: str) -> None:
    clear_cache()
    for url in (text, f"http://h/{text}"):
        try:
            site_of(url)
        except ValueError as error:
            printable(str(error))
        _CHECKED.allowed(url, _ROBOT)
        _CHECKED.ruling(url, _ROBOT)


READERS = {
    "decision": Reader(_decide, _ROBOTS),
    "explanation": Reader(_explain, _ROBOTS),
    "both readings": Reader(_decide_twice, _ROBOTS),
    "records": Reader(lambda text: parse(text.encode("latin-1")), _ROBOTS),
    "check": Reader(lambda text: check(text.encode("latin-1")), _ROBOTS),
    "HTML": Reader(lambda text: _page(text, Syntax.HTML), _META),
    "XHTML": Reader(lambda text: _page(text, Syntax.XML), _META),
    "X-Robots-Tag": Reader(
        lambda text: directives_of_headers([text], _ROBOT), _TAG, most_chars=64_000
    ),
    "fields": Reader(_answer, _FIELD),
    "Location": Reader(_redirect, _URL),
    "URL": Reader(_url, _URL),
}
