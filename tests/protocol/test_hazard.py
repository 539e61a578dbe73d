"""What the draft allows and RFC 9309 forbids: which files have such URLs, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.parsers import KosterRobotParser
from scrapy_koster.protocol.hazard import Cause, Hazard, watch_of
from scrapy_koster.protocol.reading import Rfc9309
from scrapy_koster.protocol.rewriting import sent_as

URL = "http://www.fict.org"
CLOUDFLARE = """\
# BEGIN Cloudflare Managed content
User-agent: *
Content-Signal: search=yes,ai-train=no
Allow: /

User-agent: GPTBot
Disallow: /
# END Cloudflare Managed Content

User-agent: *
Disallow: /private/
"""


def hazard(robots: str, path: str, robot: str = "figtree") -> Hazard | None:
    parser = KosterRobotParser(robots.encode())
    assert parser.allowed(URL + path, robot)
    watch = watch_of(robots.encode(), parser)
    return watch.hazard(URL + path, robot) if watch else None


def forbidden(robots: str, url: str, robot: str) -> bool:
    """The definition, evaluated."""
    readings = KosterRobotParser(robots.encode("latin-1")), Rfc9309(robots.encode("latin-1"))
    draft, rfc9309 = (all(each.allowed(u, robot) for u in sent_as(url)) for each in readings)
    return draft and not rfc9309


@pytest.mark.parametrize(
    ("cause", "robots", "path", "robot", "lines"),
    [
        pytest.param("names", "user-agent: figtrees\nallow: /\nuser-agent: *\ndisallow: /", "/",
                     "figtree", (2, 4), id="a name within another"),
        pytest.param("encoding", "user-agent: *\nallow: /a?\ndisallow: /a", "/a%3Fb", "figtree",
                     (2, 3), id="a question mark"),
        pytest.param("encoding", "user-agent: *\ndisallow: /a?b=c/%2Fd", "/a?b=c%2F/d", "figtree",
                     (None, 2), id="slashes in a query"),
        pytest.param("wildcards", "user-agent: *\ndisallow: /*.gif", "/a.gif", "figtree",
                     (None, 2), id="a star"),
        pytest.param("agents", "user-agent: figtree\nsitemap: /s\nuser-agent: b\ndisallow: /", "/",
                     "figtree", (None, 4), id="a field between"),
        pytest.param("records", CLOUDFLARE, "/private/", "figtree", (4, 11), id="Cloudflare"),
        pytest.param("order", "user-agent: *\nallow: /\ndisallow: /a", "/a", "figtree", (2, 3),
                     id="Allow first"),
    ],
)  # fmt: skip
def test_what_rfc_9309_alone_forbids_is_found_with_its_cause(
    cause: str, robots: str, path: str, robot: str, lines: tuple[int | None, int]
) -> None:
    found = hazard(robots, path, robot)
    assert found is not None
    assert found.cause.value == cause
    assert "and forbidden by RFC 9309, line" in found.because(robot)
    draft, rfc9309 = found.draft, found.rfc9309
    assert (draft.rule and draft.rule.number, rfc9309.rule and rfc9309.rule.number) == lines
    assert draft.allowed
    assert not rfc9309.allowed


def test_what_a_parser_of_a_project_allows_by_itself_is_no_hazard() -> None:
    body = b"User-agent: *\nAllow: /public\nDisallow: /"
    watch = watch_of(body, KosterRobotParser(body))
    assert watch is not None
    assert watch.hazard(f"{URL}/private", "figtree") is None  # forbidden by both


LINES = st.sampled_from(
    ["User-agent: *", "User-agent: fig", "User-agent: figs", "Sitemap: /", "Allow: /", "",
     "Disallow: /", "Disallow: /a", "Allow: /a", "Disallow: /a/b", "Allow: /a?", "Disallow: /a?b/",
     "Allow: /a%3F", "Disallow: /a?%2F", "Disallow: /%2F", "Allow: /*", "Disallow: /a*b",
     "Allow: /a$", "Disallow: /b$", "Allow: /a%24", "Disallow: /\xe9", "Allow: /%E9"]
)  # fmt: skip
PATHS = st.lists(
    st.sampled_from(["a", "b", "/", "?", "%2F", "%3F", "*", "$", "%24", "%E9", "%"]), max_size=6
).map("".join)


@given(
    st.lists(LINES, max_size=12).map("\n".join), PATHS, st.sampled_from(["fig", "x", "Fig/1 (x)"])
)
def test_every_hazard_is_found_and_no_other(robots: str, path: str, robot: str) -> None:
    url = f"{URL}/{path}"
    draft = KosterRobotParser(robots.encode("latin-1"))
    watch = watch_of(robots.encode("latin-1"), draft)
    if all(draft.allowed(each, robot) for each in sent_as(url)):
        found = watch.hazard(url, robot) if watch else None
        assert (found is not None) is forbidden(robots, url, robot)
        assert found is None or found.cause is not Cause.OTHER
