"""Preferences that a page states about itself: in headers and in META tags."""

from __future__ import annotations

import pytest

from scrapy_koster.protocol.usage import Usage
from scrapy_koster.protocol.usage_statements import page_statements


def of_page(html: str, **fields: list[bytes]) -> Usage:
    headers = {name.replace("_", "-").title().encode(): each for name, each in fields.items()}
    return Usage(page_statements(headers, html.encode(), "figtree"))


def of_headers(**fields: list[bytes]) -> str:
    return str(of_page("", **fields))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Attach, 1.2.
        ([b"train-ai=n"], "train-ai=n"),
        # Attach, 2: "a structured field dictionary".
        ([b"/a train-ai=n"], ""),
        # RFC 9651, 4.2: lines are joined by commas before the parsing.
        ([b"train-ai=n", b"search=y"], "search=y, train-ai=n"),
        ([b"train-ai=n", b"Search=y"], ""),
        ([b'train-ai=n, x="a', b'b"'], "train-ai=n"),
    ],
)
def test_content_usage(values: list[bytes], expected: str) -> None:
    assert of_headers(content_usage=values) == expected


def test_the_most_restrictive_signal_counts() -> None:
    html = "<meta name=content-signal content='search=no,use=full'>" * 2
    usage = of_page(html, content_signal=[b"search=yes, ai-train=no, use=immediate"])
    assert str(usage) == "search=n, train-ai=n"
    assert usage.use == ("immediate", "full")
    assert [str(each) for each in usage.statements][:2] == [
        "the header 'Content-Signal: search=yes, ai-train=no, use=immediate'",
        """the META tag 'name="content-signal" content="search=no,use=full"'""",
    ]


@pytest.mark.parametrize(("value", "expected"), [(b"1", "tdm=n"), (b"0", "tdm=y"), (b"2", "")])
def test_tdm_reservation(value: bytes, expected: str) -> None:
    assert of_headers(tdm_reservation=[value]) == expected
    content = value.decode("latin-1")
    assert str(of_page(f'<meta name="TDM-Reservation" content="{content}">')) == expected


def test_a_policy_is_shown() -> None:
    html = '<meta name="tdm-policy" content="https://a.example/p.json">'
    usage = of_page(html, tdm_policy=[b"https://a.example/h.json\x1b"])
    assert [str(each) for each in usage.statements] == [
        "the header 'Tdm-Policy: https://a.example/h.json\\x1b'",
        """the META tag 'name="tdm-policy" content="https://a.example/p.json"'""",
    ]
    assert usage.preferences() == {}


@pytest.mark.parametrize(
    ("content", "expected"),
    [("noai", "train-ai=n"), ("NoAI, NoImageAI", "noimageai=n, train-ai=n"), ("noaix", "")],
)
def test_noai(content: str, expected: str) -> None:
    assert str(of_page(f'<meta name="robots" content="{content}">')) == expected
    assert str(of_page(f'<meta name="figtree" content="{content}">')) == expected
    assert str(of_page(f'<meta name="other" content="{content}">')) == ""
    assert of_headers(x_robots_tag=[content.encode()]) == expected
    assert of_headers(x_robots_tag=[f"figtree: {content}".encode()]) == expected
    assert of_headers(x_robots_tag=[f"other: {content}".encode()]) == ""
    rules = content.replace(", ", ";")
    assert of_headers(robots_tag=[f"*;{rules}".encode()]) == expected
    assert of_headers(robots_tag=[f"other;{rules}".encode()]) == ""


def test_a_tag_that_is_too_long_to_be_read() -> None:
    assert of_headers(x_robots_tag=[b"a" * 65_537]) == "noimageai=n, train-ai=n"
    [statement, _] = of_page("", x_robots_tag=[b"a" * 65_537]).statements
    assert statement.text == "X-Robots-Tag of 65537 characters"


def test_texts_are_cut() -> None:
    html = f'<meta name="tdm-policy" content="{"x" * 5000}\x1b">'
    [statement] = of_page(html).statements
    assert len(statement.text) == 200
