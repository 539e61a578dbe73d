"""RFC 9309, section by section: a file, a robot, and for each path the line that decides."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import pytest
from harness import oracle9309
from harness.oracle import Decision
from harness.strategies import PIECES
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.reading import Rfc9309
from scrapy_koster.protocol.ruling import Standard

SITE = "https://www.example.com"


class Rows(NamedTuple):
    """What a file says of paths: +n is allowed and -n forbidden by line n, 0 allowed by none."""

    title: str
    file: str
    robot: str
    says: dict[str, int]


EXAMPLE_5_1 = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""
GROUPS = """allow: /foo/bar/

user-agent: FooBot
disallow: /
allow: /x/
user-agent: BarBot
disallow: /
allow: /y/


allow: /w/
user-agent: BazBot

user-agent: FooBot
allow: /z/
disallow: /
"""
TABLE = [
    # 2.1: "One or more user-agent lines that are followed by one or more rules. The group is
    # terminated by a user-agent line or end of file."
    Rows("2.1 groups", GROUPS, "foobot", {"/x/b": 5, "/z/d": 15, "/y/c": -4, "/foo/bar/": -4}),
    Rows("2.1 blank lines end nothing", GROUPS, "barbot", {"/y/c": 8, "/w/a": 11, "/z/d": -7}),
    Rows("2.1 the last group has no rules", "user-agent: *\ndisallow: /\nuser-agent: a", "a",
         {"/": 0}),
    # 2.2, the formal syntax.
    Rows("2.2 mixed case", "uSeR-aGeNt: a\nAlLoW: /x/\ndIsAlLoW: /", "a", {"/x/y": 2, "/b": -3}),
    Rows("2.2 WS is SP or HT", " \tuser-agent \t:\t a \n\tdisallow\t : \t/x\t ", "a",
         {"/x": -2, "/x%09": -2, "/y": 0}),
    Rows("2.2 NL = CR LF", "user-agent: a\r\n\r\ndisallow: /x", "a", {"/x": -3, "/y": 0}),
    Rows("2.2 a mark at the start", "\ufeffuser-agent: a\ndisallow: /x", "a", {"/x": -2}),
    Rows("2.2 a path-pattern begins with a slash", "user-agent: a\ndisallow: x\ndisallow: $", "a",
         {"/x": 0, "/": 0}),
    # 2.2.1: "Crawlers MUST use case-insensitive matching".
    Rows("2.2.1 the example of two groups", "user-agent: ExampleBot\ndisallow: /foo\n"
         "disallow: /bar\n\nuser-agent: ExampleBot\ndisallow: /baz\n", "ExampleBot",
         {"/foo": -2, "/bar": -3, "/baz": -6, "/qux": 0}),
    Rows("2.2.1 two groups, longest of both", "user-agent: a\ndisallow: /x\n\nuser-agent: b\n"
         "disallow: /\n\nuser-agent: A\nallow: /x/y\n", "a", {"/x": -2, "/x/y": 8, "/z": 0}),
    # 2.2.2: "The most specific match found MUST be used."
    Rows("2.2.2 equivalent", "user-agent: a\ndisallow: /\nallow: /", "a", {"/": 3, "/x": 3}),
    Rows("2.2.2 /robots.txt", "user-agent: a\ndisallow: /", "a",
         {"/robots.txt": 0, "/robots.txt#x": 0, "/robots.txt?x": -2, "/robots.txt/": -2,
          "/robots%2Etxt": 0, "/x/robots.txt": -2, "/ROBOTS.TXT": -2}),
    Rows("2.2.2 the example: reserved", "user-agent: a\ndisallow: /foo/bar?baz=https://foo.bar",
         "a", {"/foo/bar?baz=https://foo.bar": -2, "/foo/bar?baz=https%3A%2F%2Ffoo.bar": -2}),
    Rows("2.2.2 the example: reserved and escaped",
         "user-agent: a\ndisallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar", "a",
         {"/foo/bar?baz=https://foo.bar": -2, "/foo/bar?baz=https%3a%2f%2ffoo.bar": -2}),
    Rows("2.2.2 the example: not ASCII", "user-agent: a\ndisallow: /foo/bar/\u30c4", "a",
         {"/foo/bar/%E3%83%84": -2, "/foo/bar/\u30c4": -2, "/foo/bar/%e3%83%84": -2,
          "/foo/bar/%E3%83": 0}),
    Rows("2.2.2 an encoded slash of a path is data", "user-agent: a\ndisallow: /x/y", "a",
         {"/x%2Fy": 0, "/x/y": -2}),
    Rows("2.2.2 an encoded question mark of a path is data", "user-agent: a\ndisallow: /x?y", "a",
         {"/x%3Fy": 0, "/x?y": -2}),
    Rows("2.2.2 each escape once", "user-agent: a\ndisallow: /%2541", "a",
         {"/%2541": -2, "/A": 0, "/%41": 0}),
    Rows("2.2.2 outside of a URI", "user-agent: a\ndisallow: /x y", "a",
         {"/x%20y": -2, "/x y": -2, "/x+y": 0}),
    Rows("2.2.2 an escape of what is none of a URI's counts as three",
         "user-agent: a\nallow: /%20\ndisallow: /*abc\ndisallow: /*b", "a",
         {"/%20abc": -3, "/%20ab": 2}),
    # 2.2.3: "Crawlers MUST support the following special characters".
    Rows("2.2.3 the examples of #", "user-agent: a\nallow: / # comment in line\n"
         "# comment on its own line\ndisallow: /x", "a", {"/": 2, "/x": -4, "/%20#": 2}),
    Rows("2.2.3 the example of $", "user-agent: a\ndisallow: /\nallow: /this/path/exactly$", "a",
         {"/this/path/exactly": 3, "/this/path/exactly/": -2, "/this/path/exactly?": -2,
          "/this/path/exactly$": -2}),
    Rows("2.2.3 the example of *", "user-agent: a\ndisallow: /\nallow: /this/*/exactly", "a",
         {"/this/x/exactly": 3, "/this/x/y/exactly/z": 3, "/this//exactly": 3,
          "/this/exactly": -2}),
    Rows("2.2.3 the example of %2A", "user-agent: a\ndisallow: /path/file-with-a-%2A.html", "a",
         {"/path/file-with-a-*.html": -2, "/path/file-with-a-%2a.html": -2,
          "/path/file-with-a-x.html": 0}),
    Rows("2.2.3 $ alone behind the slash", "user-agent: a\nallow: /$\ndisallow: /", "a",
         {"/": 2, "": 2, "/page.html": -3, "/?x": -3}),
    Rows("2.2.3 stars that need the leftmost", "user-agent: a\ndisallow: /*ab*ab*b$", "a",
         {"/ababb": -2, "/abab": 0, "/abxabxb": -2, "/ab": 0}),
    Rows("2.2.3 an encoded slash behind *", "user-agent: a\ndisallow: /*%2Fx", "a",
         {"/y%2Fx": -2, "/?y=%2Fx": -2, "/?y=/x": -2, "/y/x": 0, "/%2F?/x": -2}),
    Rows("2.2.3 an encoded slash of a query counts as one",
         "user-agent: a\nallow: /*?*%2F\ndisallow: /a?b/c", "a", {"/a?b/c": -3, "/a?b/": 2}),
    # 2.2.4: "Parsing of other records MUST NOT interfere".
    Rows("2.2.4 a sitemap between agents", "user-agent: a\nsitemap: /s\nuser-agent: b\n"
         "disallow: /", "a", {"/": -4}),
    # 5.1 and 5.2, the examples.
    Rows("5.1 *", EXAMPLE_5_1, "a",
         {"/x.gif": -2, "/x.gifs": 0, "/example/": -3, "/example/x.gif": -3, "/": 0,
          "/publications/": 4, "/publications/x.gif": 4}),
    Rows("5.1 foobot", EXAMPLE_5_1, "foobot",
         {"/": -7, "/publications/": -7, "/example/page.html": 8, "/example/allowed.gif": 9,
          "/example/x.gif": -7}),
    Rows("5.2", "User-Agent: foobot\nAllow: /example/page/\n"
         "Disallow: /example/page/disallowed.gif", "foobot",
         {"/example/page/disallowed.gif": -3, "/example/page/disallow.gif": 2}),
]  # fmt: skip
ROWS = [
    pytest.param(rows.file, rows.robot, path, line, id=f"{rows.title}: {path}")
    for rows in TABLE
    for path, line in rows.says.items()
]


@pytest.mark.parametrize(("file", "robot", "path", "line"), ROWS)
def test_section_by_section(file: str, robot: str, path: str, line: int) -> None:
    body = file.encode()
    reading = Rfc9309(body)
    ruling = reading.ruling(SITE + path, robot)
    assert (ruling.allowed, ruling.standard) == (line >= 0, Standard.RFC_9309)
    assert (ruling.rule.number if ruling.rule else 0) == abs(line)
    for _ in range(2):
        assert reading.allowed(SITE + path, robot) is ruling.allowed
    token = robot.partition("/")[0].lower()
    assert oracle9309.decide(body, SITE + path, token) == Decision(line >= 0, abs(line) or None)


# 2.2.1, figure 1: "the product token (ExampleBot) is a substring of the User-Agent HTTP header".
FIGURE_1 = "Mozilla/5.0 (compatible; ExampleBot/0.1; https://www.example.com/bot.html)"
HEADERS = [
    Rows("figure 1", "user-agent: ExampleBot\ndisallow: /x\n", FIGURE_1, {"/x": -2, "/y": 0}),
    Rows("each of two tokens", "user-agent: mozilla\ndisallow: /x\nuser-agent: EXAMPLEBOT\n"
         "disallow: /*y\nallow: /x", FIGURE_1, {"/x": -2, "/y": -4, "/z": 0}),
    Rows("no other token makes it free", "user-agent: *\ndisallow: /x\n"
         "user-agent: examplebot\ndisallow: /y\nallow: /", FIGURE_1, {"/x": -2, "/y": -4, "/z": 0}),
    Rows("no name token", "user-agent: examplebot\ndisallow: /x", "(ExampleBot/1)", {"/x": -2}),
]  # fmt: skip


@pytest.mark.parametrize("rows", HEADERS, ids=lambda rows: rows.title)
def test_the_tokens_of_a_header(rows: Rows) -> None:
    for robot in (rows.robot, rows.robot.encode()):
        reading = Rfc9309(rows.file.encode())
        for path, line in rows.says.items():
            ruling = reading.ruling(SITE + path, robot)
            assert reading.allowed(SITE + path, robot) is ruling.allowed is (line >= 0)
            assert (ruling.rule.number if ruling.rule else 0) == abs(line)


# Against the plain reading.

PIECES_9309 = [*PIECES, "*", "*", "**", "$", "%2A", "%24", "%3F", "%3a", ":", ".gif", "*/", "/*"]
LINES = ["", "", "Sitemap: /x", "Crawl-delay: 1", "x", "Disallow /a", "Disallow:", "Allow: b", "#"]
AGENTS = ["*", "*", "fig", "FIG", "figtree", "fig/1", "", "* x", "fig # x"]


def made_up(chance: Random, *, urls: int) -> tuple[bytes, str, list[str]]:
    """Return a file, a robot and URLs, of pieces that are so few that they collide."""

    def path(most: int) -> str:
        return "/" * (chance.random() < 0.9) + "".join(
            chance.choices(PIECES_9309, k=chance.randint(0, most))
        )

    lines = []
    for _ in range(chance.choice([1, 1, 2, 3])):
        lines += [f"User-agent: {name}" for name in chance.choices(AGENTS, k=chance.randint(1, 2))]
        lines += chance.choices(LINES, k=1)
        for _ in range(chance.choice([1, 2, 3, 5])):
            lines.append(f"{chance.choice(['Allow', 'Disallow', 'disALLOW'])}: {path(4)}")
            lines += [chance.choice(LINES)] * (chance.random() < 0.1)
    queries = ["", "", f"?{path(3)}", f"?{path(3)}"]
    paths = [path(4).removeprefix("/") + chance.choice(queries) for _ in range(urls)]
    coding = chance.choice(["utf-8", "utf-8", "latin-1"])
    body = "\n".join(lines).encode(coding, "replace" if coding == "latin-1" else "strict")
    return body, chance.choice(["fig", "fig", "figtree", "x", ""]), [f"{SITE}/{p}" for p in paths]


@pytest.mark.parametrize(
    "pairs",
    [pytest.param(4_000, marks=pytest.mark.slow), pytest.param(100_000, marks=pytest.mark.long)],
)
def test_the_plain_reading_says_the_same(pairs: int) -> None:
    chance = Random(pairs)
    for _ in range(pairs // 50):
        body, robot, urls = made_up(chance, urls=50)
        reading = Rfc9309(body)
        for url in urls:
            plain = oracle9309.decide(body, url, robot)
            ruling = reading.ruling(url, robot)
            told = Decision(ruling.allowed, ruling.rule.number if ruling.rule else None)
            assert told == plain, (body, url, robot)
            assert reading.allowed(url, robot) is plain.allowed, (body, url, robot)


@given(st.binary(), st.one_of(st.text(), st.binary()), st.one_of(st.text(), st.binary()))
def test_nothing_raises(body: bytes, url: str | bytes, robot: str | bytes) -> None:
    for file in (body, b"User-agent: *\nDisallow: /*" + body):
        reading = Rfc9309(file)
        assert reading.allowed(url, robot) is reading.ruling(url, robot).allowed
