"""The robots META tag and X-Robots-Tag: what a page says of itself, by the text and by browsers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.metatags import Syntax
from scrapy_koster.protocol.robotsmeta import (
    NO_DIRECTIVES,
    Directives,
    directives_of_headers,
    directives_of_metas,
    directives_of_page,
)

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
ELEMENTS = ["!--", "desc", "math", "p", "plaintext", "script", "svg", "template", "title"]
PAIRS = list(itertools.product(WORDS, repeat=2))


def of_meta(content: str, name: str = "robots", token: str = "figtree") -> list[str]:
    return directives_of_metas([(name, content)], token).words()


def of_headers(*values: str, token: str = "figtree") -> list[str]:
    return directives_of_headers(values, token).words()


def of_page(html: str | bytes, token: str = "figtree", syntax: Syntax = Syntax.HTML) -> list[str]:
    octets = html if isinstance(html, bytes) else html.encode()
    return directives_of_page(octets, token, syntax=syntax).words()


def both(one: str, other: str) -> list[str]:
    """The most restrictive of two words."""
    return [word for word in BOTH if word in WORDS[one] + WORDS[other]]


class TestWords:
    @pytest.mark.parametrize(("word", "words"), WORDS.items())
    def test_each_alone(self, word: str, words: list[str]) -> None:
        assert of_meta(word) == of_headers(word) == words

    @pytest.mark.parametrize(("one", "other"), PAIRS)
    def test_two_in_one_tag(self, one: str, other: str) -> None:
        assert of_meta(f"{one},{other}") == of_headers(f"{one},{other}") == both(one, other)

    @pytest.mark.parametrize(
        "content",
        [
            "noindex,nofollow",
            "noindex nofollow",
            " noindex ,\tnofollow ",
            "noindex\nnofollow",
            ",,noindex,,nofollow,",
            "noindex , , nofollow",
            "noindex; nofollow",
            "noindex;nofollow",
            " ;NOINDEX ;; nofollow;",
            "noarchive;noindex, nosnippet;nofollow",
            "max-snippet:10;noindex;max-image-preview: none;nofollow",
            "'noindex' | \"nofollow\"",
            "noindex/nofollow",
            "noindex + nofollow.",
            "noindex\N{FULLWIDTH COMMA}nofollow",
        ],
    )
    def test_separators(self, content: str) -> None:
        assert of_meta(content) == of_headers(content) == BOTH

    @pytest.mark.parametrize(
        "content",
        [
            "",
            ",",
            "noarchive, nosnippet",
            "noindexing",
            "no index",
            "no-index",
            "max-image-preview:none",
            "max-image-preview: none",
            "max-image-preview=none; index",
            "max-image-preview : none;",
            "unknown:none; unknown=noindex",
            "max-snippet: -1, max-video-preview: none",
            "index, follow, max-image-preview:large",
            "unavailable_after: none",
        ],
    )
    def test_unknown_words_are_ignored(self, content: str) -> None:
        assert of_meta(content) == of_headers(content) == NEITHER

    def test_known_words_among_unknown_ones(self) -> None:
        content = "noarchive, max-snippet: 10, noindex, notranslate, nofollow, noodp"
        assert of_meta(content) == of_headers(content) == BOTH


class TestNames:
    """A META name is compared whole, without regard to case."""

    @pytest.mark.parametrize(
        ("name", "token", "words"),
        [
            pytest.param("robots", "figtree", BOTH, id="every robot"),
            pytest.param("ROBOTS", "figtree", BOTH, id="case"),
            pytest.param(" robots\n", "figtree", BOTH, id="space around it"),
            pytest.param("figtree", "figtree", BOTH, id="this robot"),
            pytest.param("FigTree", "figtree", BOTH, id="this robot, case"),
            pytest.param("googlebot", "figtree", NEITHER, id="another robot"),
            pytest.param("fig", "figtree", NEITHER, id="a part of its name"),
            pytest.param("figtree-news", "figtree", NEITHER, id="more than its name"),
            pytest.param("description", "figtree", NEITHER, id="no robot"),
            pytest.param("", "figtree", NEITHER, id="no name"),
            pytest.param("", "", NEITHER, id="no name, and a robot without one"),
            pytest.param("robots", "", BOTH, id="every robot, and one without a name"),
            pytest.param("figtree", "", NEITHER, id="a robot without a name"),
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
            ("FigTree: NOINDEX", ["noindex"]),
            ("figtree:noindex", ["noindex"]),
            (" figtree : noindex", ["noindex"]),
            ("googlebot: noindex, nofollow", NEITHER),
            ("googlebot:none", NEITHER),
            ("fig: none", NEITHER),
            ("robots: noindex", ["noindex"]),
            ("*: noindex", ["noindex"]),
            ("noindex, googlebot: nofollow", ["noindex"]),
            ("noindex; googlebot: nofollow", ["noindex"]),
            ("googlebot: nofollow; figtree: noindex", ["noindex"]),
            ("googlebot: nofollow;noindex", NEITHER),
            ("noindex, figtree: nofollow", BOTH),
            ("googlebot: nofollow, figtree: noindex", ["noindex"]),
            ("googlebot: figtree: noindex", ["noindex"]),
            ("figtree: max-image-preview: none, noindex", ["noindex"]),
            ("max-snippet: 10, noindex", ["noindex"]),
            ("max-snippet: 10 noindex", ["noindex"]),
            ("unavailable_after: 25 Jun 2010 15:00:00 PST", NEITHER),
            ("unavailable_after: 25 Jun 2010 15:00:00 PST, noindex", ["noindex"]),
            ("unavailable_after: Wednesday, 03-Dec-25 15:00:00 GMT, nofollow", ["nofollow"]),
            ("unavailable_after: 25 Jun 2010, 15:00:00 PST, nofollow", ["nofollow"]),
            ("Unavailable_After : 2010-06-25T15:00:00+02:00, none", BOTH),
            ("googlebot: unavailable_after: 25 Jun 2010 15:00:00 PST, none", NEITHER),
            (": noindex", ["noindex"]),
        ],
    )
    def test_header(self, value: str, words: list[str]) -> None:
        assert of_headers(value) == words

    def test_a_name_governs_its_own_header_only(self) -> None:
        assert of_headers("googlebot: nofollow", "noindex") == ["noindex"]

    def test_a_robot_without_a_name_obeys_what_is_said_to_all(self) -> None:
        assert of_headers("figtree: nofollow", "noindex", token="") == ["noindex"]


class TestSources:
    """Each directive keeps the text that says it, for the log."""

    def test_meta(self) -> None:
        page = b'<meta NAME="Robots" content="NoIndex,&#10;x">'
        assert directives_of_page(page, "figtree", syntax=Syntax.HTML) == Directives(
            noindex=r'META name="Robots" content="NoIndex,\nx"'
        )

    def test_header(self) -> None:
        said = "X-Robots-Tag: noindex, \\x1b[31mnofollow"
        assert directives_of_headers(["noindex, \x1b[31mnofollow"], "").noindex == said

    @pytest.mark.parametrize(
        "values",
        [
            pytest.param(["a" * 65_537], id="one that is long"),
            pytest.param(["all\r\n " * 12_000], id="folded lines"),
            pytest.param([""] * 40_000, id="many"),
        ],
    )
    def test_headers_too_long_to_be_read_forbid_everything(self, values: list[str]) -> None:
        chars = len(", ".join(values))
        said = f"X-Robots-Tag of {chars} characters"
        assert directives_of_headers(values, "figtree") == Directives(said, said)

    def test_the_longest_headers_that_are_read(self) -> None:
        assert of_headers("a" * 65_527, "noindex") == ["noindex"]

    def test_the_first_that_says_it_is_kept(self) -> None:
        found = directives_of_headers(["noindex"], "") | directives_of_metas(
            [("robots", "none")], ""
        )
        assert found == Directives("X-Robots-Tag: noindex", 'META name="robots" content="none"')

    def test_nothing_is_false(self) -> None:
        assert not NO_DIRECTIVES
        assert Directives(nofollow="x")


class TestWhereATagIs:
    """13.2 of the HTML standard; the cases are those where readers differ."""

    @pytest.mark.parametrize(
        "page",
        [
            pytest.param(f"<html><head><title>x</title>{META}</head><body>", id="head"),
            pytest.param(f"<body><div><p>{META}</div>", id="body"),
            pytest.param(META, id="no head, no body"),
            pytest.param(f"<html><body></body></html>{META}", id="after the end"),
            pytest.param(f"<table><tr>{META}</table>", id="table"),
            pytest.param(f"<head>{META}</head><frameset><frame src=a></frameset>", id="frames"),
            pytest.param(f"<noscript>{META}</noscript>", id="noscript"),
            pytest.param(f"{'<div>' * 5000}{META}", id="deep"),
            pytest.param(f"{'x' * 11_000_000}{META}", id="behind 11 MB of text"),
            pytest.param(f"<p {'x ' * 1000}>{META}", id="behind a tag of many attributes"),
            pytest.param(f"\ufeff{META}", id="byte order mark"),
            pytest.param(f"\0{META}\0", id="NUL around it"),
            pytest.param(f"<!-- x -->{META}", id="after a comment"),
            pytest.param(f"<!-->{META}-->", id="comment closed at once"),
            pytest.param(f"<!--->{META}-->", id="comment closed at once, with a dash"),
            pytest.param(f"<!-- x --!>{META}-->", id="comment closed by --!>"),
            pytest.param(f"<!x>{META}", id="after a bogus comment"),
            pytest.param(f"<?php echo ?>{META}", id="after a processing instruction"),
            pytest.param(f"</ x>{META}", id="after a bogus end tag"),
            pytest.param(f"<!doctype html>{META}", id="after a doctype"),
            pytest.param(f"< p>{META}", id="after a mere <"),
            pytest.param(f"<![CDATA[ a > {META}]]>", id="after what HTML knows not as CDATA"),
            pytest.param(f"<script>'</scrip>'</script\n>{META}", id="after a script"),
            pytest.param(f"<script><!-- <script> </script>--></script>{META}", id="scripts"),
            pytest.param(f"<script><!--></script>{META}", id="after a script, comment closed"),
            pytest.param(f"<script><!-- </script>{META}", id="after a script with a comment"),
            pytest.param(f"<script><script></script>{META}", id="after a script in a script"),
            pytest.param(f"<style><!-- </style>{META}", id="after a style"),
            pytest.param(f"<template>x</template>{META}", id="after a template"),
            pytest.param(f"<template><svg></template>{META}", id="after a template with SVG"),
            pytest.param(f"</template>{META}", id="after the end of no template"),
            pytest.param(f"<a title='<!--'>{META}", id="after a comment in an attribute"),
            pytest.param(f'<a title="\'">{META}', id="after a quote in quotes"),
            pytest.param(f"<a ' b=c>{META}", id="after a quote that is an attribute"),
            pytest.param(f"<a b=c'>{META}", id="after a quote in an unquoted value"),
            pytest.param(f"<svg><title/></svg>{META}", id="after an empty SVG title"),
            pytest.param(f"<svg><g><style/></svg>{META}", id="after an empty SVG style"),
            pytest.param(f"<svg/><title>x</title>{META}", id="after an empty svg"),
            pytest.param(f"<svg>{META}", id="a META ends SVG"),
            pytest.param(f"<svg></p><title>x</title>{META}", id="</p> ends SVG"),
            pytest.param(f"<svg><desc></svg>{META}", id="SVG ended in its description"),
            pytest.param(f"<math><mi><style>x</style>{META}", id="HTML in MathML"),
            pytest.param(f"<svg><title>{META}</title></svg>", id="HTML in SVG"),
            pytest.param(f"<svg><g></g><title>{META}", id="other end tags end no SVG"),
            pytest.param(f"<{META}", id="after a mere <, at once"),
            pytest.param(
                f"<script><!-- <script></script></script>{META}", id="after a script in a script's"
            ),
        ],
    )
    def test_found(self, page: str) -> None:
        assert of_page(page) == BOTH

    @pytest.mark.parametrize(
        "page",
        [
            pytest.param(f"<!-- {META} -->", id="comment"),
            pytest.param(f"x<!-- > {META} -->", id="comment, behind text"),
            pytest.param(f"<!-- {META}", id="comment without end"),
            pytest.param(f"<!---!>{META}", id="comment not closed by -!>"),
            pytest.param(f"<!-- > {META} -- > -->", id="comment with other ends"),
            pytest.param(f"<! {META[:-1]}", id="bogus comment"),
            pytest.param(f"<! {META}", id="bogus comment up to its end"),
            pytest.param(f"x<! {META}", id="bogus comment, behind text"),
            pytest.param(f"<?x {META}", id="processing instruction up to its end"),
            pytest.param(f"</ {META}", id="bogus end tag up to its end"),
            pytest.param(f"<script>x = '{META}'</script>", id="script"),
            pytest.param(f"<script>--> {META}</script>", id="script, end of no comment"),
            pytest.param(f"</title><title>{META}</title>", id="title after the end of another"),
            pytest.param(f"<svg><p><title>{META}", id="title after a tag that ends SVG"),
            pytest.param(f"<svg></p><title>{META}", id="title after </p>, which ends SVG"),
            pytest.param(f"<svg></br><title>{META}", id="title after </br>, which ends SVG"),
            pytest.param(f"<svg><desc><title>{META}", id="title of HTML in SVG"),
            pytest.param("<meta name=robots><p content=none>", id="content of another tag"),
            pytest.param(f"<script>{META}", id="script without end"),
            pytest.param(f"<SCRIPT>{META}</SCRIPT>", id="script, case"),
            pytest.param(f"<script>{META}</scripts>{META}</script>", id="script, other end tag"),
            pytest.param(f"<script/>{META}", id="script with a slash"),
            pytest.param(f"<script><!-- <script> </script>{META}--></script>", id="scripts"),
            pytest.param(f"<style>{META}</style>", id="style"),
            pytest.param(f"<title>{META}</title>", id="title"),
            pytest.param(f"<textarea>{META}</textarea>", id="textarea"),
            pytest.param(f"<iframe>{META}</iframe>", id="iframe"),
            pytest.param(f"<noframes>{META}</noframes>", id="noframes"),
            pytest.param(f"<noembed>{META}</noembed>", id="noembed"),
            pytest.param(f"<xmp>{META}</xmp>", id="xmp"),
            pytest.param(f"<plaintext>{META}</plaintext>{META}", id="plaintext"),
            pytest.param(f"<template>{META}</template>", id="template"),
            pytest.param(f"<template><div>{META}", id="template without end"),
            pytest.param(f"<template><template></template>{META}</template>", id="templates"),
            pytest.param(f"<template><svg><desc></desc></svg>{META}</template>", id="SVG inside"),
            pytest.param(f"<template><svg><desc></template>{META[:5]}", id="cut short"),
            pytest.param(f"<svg><desc><template></svg>{META}", id="template inside SVG"),
            pytest.param(f"<svg><![CDATA[ > {META}]]></svg>", id="CDATA in SVG"),
            pytest.param(f"<svg><![CDATA[ {META}", id="CDATA in SVG without end"),
            pytest.param(f"<svg/><title>{META}", id="title after an empty svg"),
            pytest.param(f"<svg a=/><g></svg><title>{META}", id="title after SVG"),
            pytest.param(f"<math><mi></mi></math><style>{META}", id="style after MathML"),
            pytest.param(f"<a title='{META}'>", id="attribute"),
            pytest.param(f"<a title = '{META}", id="attribute without end"),
            pytest.param(f'<b<a ==" <body>{META}', id="attribute with two signs, without end"),
            pytest.param("&lt;meta name=robots content=none&gt;", id="references"),
            pytest.param("<meta name=robots content=none", id="tag without end"),
            pytest.param("<metadata name=robots content=none>", id="another tag"),
            pytest.param("<xmeta name=robots content=none>", id="another tag's end"),
            pytest.param("</meta name=robots content=none>", id="end tag"),
            pytest.param("< meta name=robots content=none>", id="space before it"),
            pytest.param("<me\0ta name=robots content=none>", id="NUL in it"),
            pytest.param("<p>A robots meta tag with noindex</p>", id="prose"),
            pytest.param("", id="nothing"),
        ],
    )
    def test_text(self, page: str) -> None:
        assert of_page(page) == NEITHER

    @pytest.mark.parametrize(
        "tag",
        [
            "<META NAME=ROBOTS CONTENT=NONE>",
            "<meta\nname = robots\ncontent\t=\f'none'>",
            "<meta/name=robots content=none>",
            "<meta content='none' name='robots'>",
            '<meta content="none"name="robots">',
            "<meta name=robots content=none />",
            "<meta name=robots content=none/>",
            "<meta name=robots name=x content=none content=all>",
            "<meta =a name=robots content=none>",
            "<meta a==b name=robots content=none>",
            "<meta a= b name=robots content=none>",
            "<meta content='a > none' name=robots>",
            "<meta content='<meta x> none' name=robots>",
            "<meta name=robots content=&#x6e;one>",
            "<meta name=ROBOTS content='NON&#69;'>",
            "<meta name='robots' content='none&#" + "1" * 5000 + ";, none'>",
            "<meta " + "a " * 100 + "name=robots content=none>",
        ],
    )
    def test_attributes(self, tag: str) -> None:
        assert of_page(f"<head>{tag}</head>") == BOTH

    @pytest.mark.parametrize(
        "tag",
        [
            "<meta name=robots>",
            "<meta content=none>",
            "<meta name content=none>",
            "<meta name= content=none>",
            "<meta name=robots/content=none>",
            "<meta a=\nname=robots content=none>",
            "<meta name=x name=robots content=none>",
            "<meta name=robots content=all content=none>",
            "<meta property=robots content=none>",
            "<meta http-equiv=robots content=none>",
            "<meta name='rob\0ots' content=none>",
            "<meta name='rob ots' content=none>",
            "<meta name='&#" + "1" * 5000 + ";robots' content=none>",
        ],
    )
    def test_attributes_that_say_nothing(self, tag: str) -> None:
        assert of_page(f"<head>{tag}</head>") == NEITHER

    @pytest.mark.parametrize(
        "encoding", ["utf-8", "windows-1251", "shift_jis", "gb18030", "euc-kr"]
    )
    def test_encodings(self, encoding: str) -> None:
        title = "\u042f" if encoding == "windows-1251" else "\u65e5\u672c"
        page = f"<title>{title}</title><meta name=description content={title}>{META}"
        assert of_page(page.encode(encoding)) == BOTH


class TestXHTML:
    @pytest.mark.parametrize(
        "page",
        [
            f'<?xml version="1.0"?><html xmlns="x"><head>{META[:-1]}/></head></html>',
            f"<?x a > b ?>{META}",
            f"<html><head><title/>{META}</head></html>",
            f"<script src='x'/>{META}",
            f"<![CDATA[ <title> ]]>{META}",
            f"<html:template/>{META}",
        ],
    )
    def test_found(self, page: str) -> None:
        assert of_page(page, syntax=Syntax.XML) == BOTH

    @pytest.mark.parametrize(
        "page",
        [
            f"<![CDATA[ > {META}]]>",
            f"<?x > {META} ?>",
            f"<?x > {META}",
            f"?><?x > {META} ?>",
            f"]]><![CDATA[ > {META}]]>",
            f"<!-- {META} -->",
            f"<script>{META}</script>",
            f"<style>{META}</style>",
        ],
    )
    def test_text(self, page: str) -> None:
        assert of_page(page, syntax=Syntax.XML) == NEITHER


class TestEveryInput:
    @given(st.binary(), st.text())
    def test_of_octets(self, octets: bytes, token: str) -> None:
        for syntax in Syntax:
            of_page(octets, token, syntax)

    pieces = st.sampled_from(
        [META, "<![CDATA[", "]]>", "<a b='", "</", "&#"]
        + [f"<{slash}{name}>" for slash in ("", "/") for name in ELEMENTS]
        + list("<>\"'=/!-? ax")
    )

    @given(st.lists(pieces))
    def test_of_markup(self, parts: list[str]) -> None:
        page = "".join(parts)
        for syntax in Syntax:
            assert of_page(page, syntax=syntax) in (NEITHER, BOTH)
