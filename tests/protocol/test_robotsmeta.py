"""The robots META tag and X-Robots-Tag: what a page says of itself, by the text and by browsers."""

from __future__ import annotations

import itertools
from typing import Any

import http_sf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.metatags import metas_of_page
from scrapy_koster.protocol.robotsmeta import Directives, directives_of, names_for

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
PAIRS = list(itertools.product(WORDS, repeat=2))


def of_meta(content: str, name: str = "robots", token: str = "figtree") -> list[str]:
    return sorted(directives_of([(name, content)], {}, token), reverse=True)


def tagged(*values: str, token: str = "figtree", field: str = "X-Robots-Tag") -> Directives:
    lines = [value.encode("latin-1", "replace") for value in values]
    return directives_of((), {field.encode(): lines}, token)


def of_headers(*values: str, token: str = "figtree") -> list[str]:
    return sorted(tagged(*values, token=token), reverse=True)


def of_robots_tag(*values: str, token: str = "figtree") -> list[str]:
    return sorted(tagged(*values, token=token, field="Robots-Tag"), reverse=True)


def of_page(html: str | bytes, token: str = "figtree") -> list[str]:
    octets = html if isinstance(html, bytes) else html.encode()
    return sorted(directives_of(metas_of_page(octets, names_for(token)), {}, token), reverse=True)


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


class TestRobotsTag:
    """Draft-illyes-repext-03, by section, and RFC 9651."""

    @pytest.mark.parametrize(
        ("value", "token", "words"),
        [
            # 3.1.1: "a global nosnippet rule for all accessors, and an additional noindex rule
            # specifically for ExampleBot".
            ("*;nosnippet, ExampleBot;noindex", "examplebot", ["noindex"]),
            ("*;nosnippet, ExampleBot;noindex", "figtree", NEITHER),
            # The example of draft 02: "no rules for the product token ExampleBot". "A restriction
            # applied to the global * token applies to all accessors".
            ("*;noindex;nosnippet, ExampleBot;", "figtree", ["noindex"]),
            ("*;noindex;nosnippet, ExampleBot;", "examplebot", ["noindex"]),
            # "If a product token appears multiple times in the field, or if rules are provided for
            # both a specific product token and the global * identifier, the implementor MUST apply
            # the union of all restrictive rules."
            ("figtree;noindex, figtree;nofollow", "figtree", BOTH),
            ("*;nofollow, figtree;noindex", "figtree", BOTH),
            # 3.1.3: "The values are case insensitive." RFC 9309, 2.2.1, of the token: the same.
            ("FigTree;NoIndex", "figtree", ["noindex"]),
            # 3.1.3: "Implementors may support other rules".
            ("*;none", "figtree", BOTH),
            ("*;max-image-preview=none", "figtree", NEITHER),
            # 3.1.1: an Item is "a product token", and not a rule.
            ("noindex", "figtree", NEITHER),
            ("robots;noindex", "figtree", NEITHER),
            ("fig;noindex, figtree-images;noindex", "figtree", NEITHER),
            # RFC 9651, 3.1.2 and 3.3.6.
            ("*;  noindex\t ,  *;nofollow", "figtree", BOTH),
            ("*;noindex=?1;nofollow=?0", "figtree", ["noindex"]),
        ],
    )
    def test_it(self, value: str, token: str, words: list[str]) -> None:
        assert of_robots_tag(value, token=token) == words

    def test_several_lines_and_both_fields_are_combined(self) -> None:
        assert of_robots_tag("*;noindex", "other;x, figtree;nofollow") == BOTH
        fields = {b"Robots-Tag": [b"*;noindex"], b"X-Robots-Tag": [b"googlebot: none, nofollow"]}
        assert directives_of((), fields, "figtree") == {"noindex": "Robots-Tag: *;noindex"}
        assert sorted(directives_of((), fields, "googlebot")) == sorted(BOTH)

    @pytest.mark.parametrize(("more", "words"), [("", BOTH), ("x", ["noindex"])])
    def test_a_field_is_read_up_to_the_limit(self, more: str, words: list[str]) -> None:
        """3.1.1: "Any partially transmitted or truncated List member [...] MUST be ignored."."""
        room = 65_536 - len("*;noindex,,*;nofollow")
        assert of_robots_tag(f"*;noindex,{'a' * room}{more},*;nofollow", "*;none") == words

    items = st.tuples(
        st.sampled_from(["*", "figtree", '"figtree"', "fig", "1", "(figtree)"]),
        st.dictionaries(
            st.sampled_from(["noindex", "nofollow", "x", "max-snippet"]),
            st.sampled_from(["", "=?1", "=?0", "=noindex", '="nofollow"', "=1"]),
        ),
    )

    @given(st.lists(items), st.sampled_from([";", "; "]), st.sampled_from([",", " , \t"]))
    def test_a_valid_list_is_read_as_rfc_9651_reads_it(
        self, lists: list[tuple[str, dict[str, str]]], semicolon: str, comma: str
    ) -> None:
        members = [
            semicolon.join([item, *(key + value for key, value in rules.items())])
            for item, rules in lists
        ]
        value = comma.join(members)
        parsed: Any = http_sf.parse(value.encode(), tltype="list")
        said = {
            key
            for item, rules in parsed
            if str(item) in ("*", "figtree")
            for key, is_set in rules.items()
            if is_set is not False
        }
        assert of_robots_tag(value) == [word for word in BOTH if word in said]


class TestSources:
    """Each directive keeps the text that says it, for the log."""

    def test_meta(self) -> None:
        page = b'<meta NAME="Robots" content="NoIndex,&#10;x">'
        said = r'META name="Robots" content="NoIndex,\nx"'
        assert directives_of(metas_of_page(page, ["robots"]), {}, "") == {"noindex": said}

    def test_header(self) -> None:
        said = "X-Robots-Tag: noindex, \\x1b[31mnofollow"
        assert tagged("noindex, \x1b[31mnofollow", token="")["noindex"] == said

    @pytest.mark.parametrize("values", [pytest.param(["a" * 65_537], id="one that is long")])
    def test_headers_too_long_to_be_read_forbid_everything(self, values: list[str]) -> None:
        chars = len(", ".join(values))
        said = f"X-Robots-Tag of {chars} characters"
        assert tagged(*values) == {"noindex": said, "nofollow": said}


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

    @pytest.mark.parametrize("encoding", ["utf-8", "windows-1251", "shift_jis"])
    def test_encodings(self, encoding: str) -> None:
        title = "\u042f" if encoding == "windows-1251" else "\u65e5\u672c"
        page = f"<title>{title}</title><meta name=description content={title}>{META}"
        assert of_page(page.encode(encoding)) == BOTH
