"""3.2.1: the name token of a robot."""

from __future__ import annotations

import pytest

from scrapy_koster.protocol.nametoken import joined, name_token, names_of, other_tokens


@pytest.mark.parametrize(
    ("header", "token"),
    [
        pytest.param("FigTree/0.1 Robot libwww-perl/5.04", "figtree", id="example"),
        pytest.param("FigTree", "figtree", id="A3-case"),
        pytest.param(b"FigTree/0.1", "figtree", id="octets"),
        pytest.param("Mozilla/5.0 (compatible; FigTree/0.1)", "mozilla", id="mozilla"),
        pytest.param("fig.tree_1!#$%&'*+-^`|~ x", "fig.tree_1!#$%&'*+-^`|~", id="all-marks"),
        pytest.param("*", "*", id="star"),
        pytest.param("", "", id="empty"),
        pytest.param(" FigTree", "", id="space-in-front"),
        pytest.param("\u212a", "", id="kelvin-sign"),
    ],
)
def test_name_token(header: str | bytes, token: str) -> None:
    assert name_token(header) == token


@pytest.mark.parametrize(
    ("robot", "names"),
    [
        ("FigTree-Images, figtree", ("figtree-images", "figtree")),
        (b"a,b ,\tc", ("a", "b", "c")),
        ("FigTree/0.1", ("figtree",)),
        ("a, b/1", ("a",)),
        ("Mozilla/5.0 (KHTML, like Gecko)", ("mozilla",)),
        ("", ("",)),
    ],
)
def test_several_names(robot: str | bytes, names: tuple[str, ...]) -> None:
    assert names_of(robot) == names
    if len(names) > 1:
        assert other_tokens(robot) == frozenset()


def test_names_in_a_list() -> None:
    assert joined(["a", "b-c"]) == joined(("a", "b-c")) == "a, b-c"
    assert joined("a/b") == "a/b"
    assert joined(None) is None


@pytest.mark.parametrize("names", [["a/1"], ["a", ""], ["*"], [3], [b"a"], ["a b"], [["a"]]])
def test_no_names_in_a_list(names: list[object]) -> None:
    with pytest.raises(ValueError, match="is not a name token"):
        joined(names)
