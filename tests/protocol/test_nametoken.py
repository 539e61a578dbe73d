"""3.2.1: the name token of a robot."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrapy_koster.protocol.nametoken import name_token


@pytest.mark.parametrize(
    ("header", "token"),
    [
        pytest.param("FigTree/0.1 Robot libwww-perl/5.04", "figtree", id="example"),
        pytest.param("UnhipBot/0.1", "unhipbot", id="section-4"),
        pytest.param("figtree", "figtree", id="token"),
        pytest.param("FigTree", "figtree", id="A3-case"),
        pytest.param(b"FigTree/0.1", "figtree", id="octets"),
        pytest.param("Mozilla/5.0 (compatible; FigTree/0.1)", "mozilla", id="mozilla"),
        pytest.param("Scrapy/2.19 (+https://scrapy.org)", "scrapy", id="scrapy"),
        pytest.param("fig.tree_1!#$%&'*+-^`|~ x", "fig.tree_1!#$%&'*+-^`|~", id="all-marks"),
        pytest.param("*", "*", id="star"),
        pytest.param("", "", id="empty"),
        pytest.param(b"", "", id="no-octets"),
        pytest.param(" FigTree", "", id="space-in-front"),
        pytest.param("(FigTree)", "", id="comment"),
        pytest.param("fig\u00e9", "fig", id="no-US-ASCII"),
        pytest.param("\u212a", "", id="kelvin-sign"),
        pytest.param("fig\0tree", "fig", id="CTL"),
    ],
)
def test_name_token(header: str | bytes, token: str) -> None:
    assert name_token(header) == token


@given(st.one_of(st.text(), st.binary()))
def test_the_token_of_a_token_is_itself(header: str | bytes) -> None:
    token = name_token(header)
    assert name_token(token) == token
