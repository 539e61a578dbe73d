"""The robots META tag and X-Robots-Tag: what a page says of itself, by the text and by browsers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.robotsmeta import directives_of, names_for

META = '<meta name="robots" content="none">'
NEITHER: list[str] = []
BOTH = ["noindex", "nofollow"]
WORDS = {
    "all": NEITHER,
    "none": BOTH,
    "index": NEITHER,
    "follow": NEITHER,
    "noindex": ["noindex"],
    "nofollow": ["nofollow"],
}
"""The list of terms of the text."""
ELEMENTS = ["!--", "p", "script", "svg", "template", "title"]
PAIRS = list(itertools.product(WORDS, repeat=2))


def of_meta(content: str, name: str = "robots", token: str = "figtree") -> list[str]:
    return sorted(directives_of([(name, content)], (), token), reverse=True)


def of_headers(*values: str, token: str = "figtree") -> list[str]:
    return sorted(directives_of((), values, token), reverse=True)


def of_page(html: str | bytes, token: str = "figtree") -> list[str]:
    octets = html if isinstance(html, bytes) else html.encode()
    return sorted(directives_of(metas_of_page(octets, names_for(token)), (), token), reverse=True)


def both(one: str, other: str) -> list[str]:
    """The most restrictive of two words."""
    return [word for word in BOTH if word in WORDS[one] + WORDS[other]]


class TestWords:
    @pytest.mark.parametrize(("one", "other"), PAIRS)
    def test_two_in_one_tag(self, one: str, other: str) -> None:
        assert of_meta(f"{one},{other}") == of_headers(f"{one},{other}") == both(one, other)
        assert of_meta(one) == of_headers(one) == WORDS[one]

    @pytest.mark.parametrize(
        "content",
        [
            "noindex,nofollow",
            " ;NOINDEX ;; nofollow;",
            "max-snippet:10;noindex;max-image-preview: none;nofollow",
            "'noindex' | \"nofollow\"",
            "noindex\N{FULLWIDTH COMMA}nofollow",
        ],
    )
    def test_separators(self, content: str) -> None:
        assert of_meta(content) == of_headers(content) == BOTH

    @pytest.mark.parametrize(
        "content",
        [
            "",
            "noindexing",
            "max-image-preview: none",
            "unknown:none; unknown=noindex",
            "max-snippet: -1, max-video-preview: none",
        ],
    )
    def test_unknown_words_are_ignored(self, content: str) -> None:
        assert of_meta(content) == of_headers(content) == NEITHER


class TestNames:
    """A META name is compared whole, without regard to case."""

    @pytest.mark.parametrize(
        ("name", "token", "words"),
        [
            pytest.param("robots", "figtree", BOTH, id="every robot"),
            pytest.param(" robots\n", "figtree", BOTH, id="space around it"),
            pytest.param("figtree", "figtree", BOTH, id="this robot"),
            pytest.param("googlebot", "figtree", NEITHER, id="another robot"),
            pytest.param("fig", "figtree", NEITHER, id="a part of its name"),
            pytest.param("", "figtree", NEITHER, id="no name"),
            pytest.param("", "", NEITHER, id="no name, and a robot without one"),
            pytest.param("\N{KELVIN SIGN}oster", "koster", NEITHER, id="not ASCII"),
            pytest.param("\xa0robots", "figtree", NEITHER, id="what is no space to HTML"),
        ],
    )
    def test_meta(self, name: str, token: str, words: list[str]) -> None:
        assert of_meta("none", name, token) == words
        assert of_page(f"<meta name='{name}' content=none>", token) == words

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("figtree: noindex, nofollow", BOTH),
            ("googlebot: noindex, nofollow", NEITHER),
            ("robots: noindex", ["noindex"]),
            ("noindex, googlebot: nofollow", ["noindex"]),
            ("googlebot: nofollow;noindex", NEITHER),
            ("googlebot: nofollow, figtree: noindex", ["noindex"]),
            ("figtree: max-image-preview: none, noindex", ["noindex"]),
            ("unavailable_after: 25 Jun 2010 15:00:00 PST", NEITHER),
        ],
    )
    def test_header(self, value: str, words: list[str]) -> None:
        assert of_headers(value) == words

    def test_a_name_governs_its_own_header_only(self) -> None:
        assert of_headers("googlebot: nofollow", "noindex") == ["noindex"]


class TestSources:
    """Each directive keeps the text that says it, for the log."""

    def test_meta(self) -> None:
        page = b'<meta NAME="Robots" content="NoIndex,&#10;x">'
        said = r'META name="Robots" content="NoIndex,\nx"'
        assert directives_of(metas_of_page(page, ["robots"]), (), "") == {"noindex": said}

    def test_header(self) -> None:
        said = "X-Robots-Tag: noindex, \\x1b[31mnofollow"
        assert directives_of((), ["noindex, \x1b[31mnofollow"], "")["noindex"] == said

    @pytest.mark.parametrize("values", [pytest.param(["a" * 65_537], id="one that is long")])
    def test_headers_too_long_to_be_read_forbid_everything(self, values: list[str]) -> None:
        chars = len(", ".join(values))
        said = f"X-Robots-Tag of {chars} characters"
        assert directives_of((), values, "figtree") == {"noindex": said, "nofollow": said}

    def test_the_longest_headers_that_are_read(self) -> None:
        assert of_headers("a" * 65_527, "noindex") == ["noindex"]

    def test_the_first_that_says_it_is_kept(self) -> None:
        assert directives_of((), ["noindex", "none"], "") == {
            "noindex": "X-Robots-Tag: noindex",
            "nofollow": "X-Robots-Tag: none",
        }


class TestWhereATagIs:
    """13.2 of the HTML standard; the cases are those where readers differ."""

    @pytest.mark.parametrize(
        "page",
        [
            pytest.param(f"<html><head><title>x</title>{META}</head><body>", id="head"),
            pytest.param(f"{'x' * 11_000_000}{META}", id="behind 11 MB of text"),
            pytest.param(f"<!-->{META}-->", id="comment closed at once"),
            pytest.param(f"<?php echo ?>{META}", id="after a processing instruction"),
            pytest.param(f"<script><!--></script>{META}", id="after a script, comment closed"),
        ],
    )
    def test_found(self, page: str) -> None:
        assert of_page(page) == BOTH

    @pytest.mark.parametrize(
        "page",
        [
            pytest.param(f"<!-- {META} -->", id="comment"),
            pytest.param(f"<!---!>{META}", id="comment not closed by -!>"),
            pytest.param(f"<! {META}", id="bogus comment up to its end"),
            pytest.param("<meta name=robots><p content=none>", id="content of another tag"),
            pytest.param(f"<script>{META}</scripts>{META}</script>", id="script, other end tag"),
            pytest.param(f"<a title='{META}'>", id="attribute"),
            pytest.param("<meta name=robots content=none", id="tag without end"),
        ],
    )
    def test_text(self, page: str) -> None:
        assert of_page(page) == NEITHER

    @pytest.mark.parametrize(
        "tag",
        [
            "<meta\nname = robots\ncontent\t=\f'none'>",
            "<meta/name=robots content=none>",
            '<meta content="none"name="robots">',
            "<meta =a name=robots content=none>",
            "<meta content='a > none' name=robots>",
            "<meta name='robots' content='none&#" + "1" * 5000 + ";, none'>",
            "<meta " + "a " * 100 + "name=robots content=none>",
        ],
    )
    def test_attributes(self, tag: str) -> None:
        assert of_page(f"<head>{tag}</head>") == BOTH

    @pytest.mark.parametrize(
        "tag",
        [
            "<meta name content=none>",
            "<meta name=robots/content=none>",
            "<meta name=x name=robots content=none>",
            "<meta name='rob ots' content=none>",
            "<meta name='&#" + "1" * 5000 + ";robots' content=none>",
        ],
    )
    def test_attributes_that_say_nothing(self, tag: str) -> None:
        assert of_page(f"<head>{tag}</head>") == NEITHER

    @pytest.mark.parametrize("encoding", ["utf-8", "windows-1251", "shift_jis"])
    def test_encodings(self, encoding: str) -> None:
        title = "\u042f" if encoding == "windows-1251" else "\u65e5\u672c"
        page = f"<title>{title}</title><meta name=description content={title}>{META}"
        assert of_page(page.encode(encoding)) == BOTH


class TestEveryInput:
    @given(st.binary(), st.text())
    def test_of_octets(self, octets: bytes, token: str) -> None:
        of_page(octets, token)

    pieces = st.sampled_from(
        [META, "<![CDATA[", "]]>", "<a b='", "</", "&#"]
        + [f"<{slash}{name}>" for slash in ("", "/") for name in ELEMENTS]
        + list("<>\"'=/!-? ax")
    )

    @given(st.lists(pieces))
    def test_of_markup(self, parts: list[str]) -> None:
        assert of_page("".join(parts)) in (NEITHER, BOTH)
