"""Usage preferences: vocab, sentence by sentence; attach is in test_usage_lines.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from scrapy_koster.protocol.usage import (
    KNOWN_LABELS,
    USE,
    Level,
    Origin,
    Preference,
    Stated,
    Statement,
    Usage,
    UsageAction,
    UsageChoice,
    UsageUnknown,
    kept_of,
    preferences_in,
    tokens_in,
)

ALLOW, DISALLOW, UNKNOWN = Preference.ALLOW, Preference.DISALLOW, Preference.UNKNOWN
BY_LETTER = {"y": ALLOW, "n": DISALLOW}


def stated(**labels: str) -> Stated:
    return tuple((name.replace("_", "-"), BY_LETTER[letter]) for name, letter in labels.items())


def header(**labels: str) -> Statement:
    return Statement(origin=Origin.HEADER, text="Content-Usage: ...", stated=stated(**labels))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # 6: "to allow model training, disallow search, with the preference for other categories
        # being unknown".
        pytest.param(b"train-ai=y, search=n", stated(train_ai="y", search="n"), id="6-example"),
        # 3: "In the absence of a statement of preference, all usage categories are assigned a
        # preference value of unknown".
        pytest.param(b"", (), id="3-nothing"),
        # 6.1: "These tokens are case sensitive." 6.5.1: "If the parsing of the Dictionary fails,
        # preferences are unknown. This includes where keys include uppercase characters".
        pytest.param(b"search=n, Train-AI=n", (), id="6.5.1-all-of-it-fails"),
        pytest.param(b"train-ai=N", (), id="6.2-case-of-a-value"),
        # 6.4: "any unknown labels MUST be ignored" in what is known (test_of_unknown_labels).
        pytest.param(b"train-ai=n, new=y", (*stated(train_ai="n"), ("new", ALLOW)), id="6.4-label"),
        # 6.5.1: "the following results in all preferences being unknown".
        pytest.param(b'train-ai=y, train-ai, search=n, search="n"', (), id="6.5.1-example"),
        # 6.5.2: "parameters even though the preference is unknown". What the example has behind
        # its last semicolon is no parameter, so the parsing fails: unknown as well.
        pytest.param(b'train-ai;has;parameters="?";', (), id="6.5.2-example-as-printed"),
        # RFC 9651, 4.2.2.
        pytest.param(b"train-ai=n, d=@999999999999999", (), id="9651-a-date-of-no-calendar"),
    ],
)
def test_a_dictionary(value: bytes, expected: Stated) -> None:
    assert preferences_in(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(
            b"search=yes, ai-input=no, ai-train=no",
            stated(search="y", ai_input="n", train_ai="n", ai_use="n"),
            id="example",
        ),
        pytest.param(
            b"ai-use=yes, ai-input=no", stated(ai_use="n", ai_input="n"), id="ai-use and ai-input"
        ),
        pytest.param(b"ai-train=n, train-ai=yes", stated(train_ai="n"), id="both names"),
        pytest.param(b"ai-train=No", (), id="case"),
        # Cloudflare, "Content use signal": "The field takes one of three values".
        pytest.param(
            b"search=yes,ai-train=no,use=reference",
            (*stated(search="y", train_ai="n"), ("use", Level.REFERENCE)),
            id="use",
        ),
        pytest.param(b"use=other, search=full", (), id="no level"),
        pytest.param(b"use=no", (), id="a level only"),
        pytest.param(
            b", ".join(b"k%d=n" % n for n in range(20)) + b", use=full",
            (*((f"k{n}", DISALLOW) for n in range(20)), ("use", Level.FULL)),
            id="use after twenty unknown labels",
        ),
    ],
)
def test_a_content_signal(value: bytes, expected: Stated) -> None:
    assert preferences_in(value, is_signal=True) == expected


def test_use_is_a_label_like_any_other_in_content_usage() -> None:
    assert preferences_in(b"use=reference, use=n") == stated(use="n")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # 5.1: "If any statement of preference indicates that the usage is disallowed, the result
        # is that the usage is disallowed."
        ("yn", DISALLOW),
        ("n-", DISALLOW),
        # "Otherwise, if any statement of preference allows the usage, the result is that the
        # usage is allowed."
        ("y", ALLOW),
        # "Otherwise, the preference for that category is unknown."
        ("-", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_combination(said: str, expected: Preference) -> None:
    statements = [header() if each == "-" else header(search=each) for each in said]
    assert Usage(tuple(statements)).preference("search") is expected
    assert Usage(tuple(statements)).preference("train-ai") is UNKNOWN


def test_of_unknown_labels() -> None:
    """6.4: "any unknown labels MUST be ignored". A setting may make one known."""
    said = [header(new="n")]
    assert Usage(tuple(said)).preference("new") is UNKNOWN
    assert Usage(tuple(said)).preferences() == {}
    choice = UsageChoice(purposes=("new",))
    usage = Usage(tuple(said), labels=choice.labels)
    assert usage.preference("new") is DISALLOW
    assert str(usage) == "new=n"
    assert said[0].preferences == {"new": DISALLOW}


@pytest.mark.parametrize("read", [preferences_in, partial(preferences_in, is_signal=True)])
def test_ai_input_disallows_ai_use(read: Callable[[bytes], Stated]) -> None:
    assert read(b"ai-input=n") == stated(ai_input="n", ai_use="n")
    choice = UsageChoice(purposes=("ai-use",))
    said = [header(ai_input="n", ai_use="n")]
    assert choice.disallowed(said) == ("ai-use", said[0])


def test_many_unknown_labels() -> None:
    keys = ", ".join(f"k{n}=n" for n in range(1000))
    found = dict(preferences_in(f"{keys}, train-ai=n, {'k' * 65}=n".encode()))
    assert list(found) == [*(f"k{n}" for n in range(20)), "train-ai"]


@pytest.mark.parametrize("read", [preferences_in, partial(preferences_in, is_signal=True)])
def test_what_is_too_long_to_be_read_disallows(read: object) -> None:
    assert callable(read)
    padding = b"train-ai=y, x=" + b"y" * (131_072 - 14)
    assert read(padding) == (("train-ai", ALLOW),)
    assert dict(read(padding + b"y")) == dict.fromkeys(KNOWN_LABELS, DISALLOW)
    assert tokens_in(padding) is not None


def test_usage_as_text_and_for_json() -> None:
    text = "Content-Usage: train-ai=n"
    said = Statement(
        origin=Origin.ROBOTS_TXT, text=text, stated=stated(train_ai="n"), line=3, digest="ab"
    )
    usage = Usage((said, header(search="y", train_ai="y")))
    assert repr(usage) == "<Usage search=y, train-ai=n>"
    assert str(usage.statements[1]) == "the header 'Content-Usage: ...'"
    told = usage.to_dict()
    first, second = told.pop("statements")
    assert told == {"preferences": {"search": "y", "train-ai": "n"}, "use": []}
    assert (first["source"], second["source"]) == ("robots.txt", "header")
    assert (first["line"], first["text"], first["digest"]) == (3, text, "ab")
    assert first["preferences"] == {"train-ai": "n"}


def test_the_line_of_a_statement() -> None:
    said = Statement(origin=Origin.ROBOTS_TXT, text="Content-Usage: /a b=n", line=3)
    assert said.as_line() == (3, b"content-usage", b"/a b=n")
    assert header().as_line() is None


@pytest.mark.parametrize(
    ("purposes", "unknown", "said", "unfit"),
    [
        ((), UsageUnknown.DROP, {"train_ai": "n"}, None),
        (("train-ai",), UsageUnknown.KEEP, {"train_ai": "n"}, "train-ai"),
        (("train-ai",), UsageUnknown.KEEP, {"train_ai": "y"}, None),
        (("train-ai",), UsageUnknown.DROP, {}, "train-ai"),
        (("train-ai", "search"), UsageUnknown.DROP, {"search": "n"}, "search"),
        (("search", "train-ai", "tdm"), UsageUnknown.DROP, {"search": "y"}, "train-ai"),
    ],
)
def test_what_is_unfit(
    purposes: tuple[str, ...], unknown: UsageUnknown, said: dict[str, str], unfit: str | None
) -> None:
    choice = UsageChoice(purposes=purposes, unknown=unknown)
    found = choice.unfit(Usage((header(**said),), labels=choice.labels))
    assert (found and found[0]) == unfit
    is_disallowed = unfit is not None and unfit.replace("-", "_") in said
    assert (found is not None and found[1] is not None) is is_disallowed


@pytest.mark.parametrize("action", UsageAction)
def test_what_a_choice_does(action: UsageAction) -> None:
    none = UsageChoice(action=action, field="usage")
    assert (none.drops, none.refuses, none.is_on) == (False, False, True)
    one = UsageChoice(action=action, purposes=("search",))
    assert one.refuses is (action is UsageAction.REFUSE)
    assert one.drops is (action is not UsageAction.REPORT)
    assert one.is_on
    assert not UsageChoice().is_on
    assert one.disallowed([header(search="y"), no := header(search="n")]) == ("search", no)
    assert one.disallowed([header(search="y"), header(tdm="n")]) is None


def test_of_many_statements_those_stay_that_matter() -> None:
    level = Statement(origin=Origin.HEADER, text="", stated=((USE, Level.IMMEDIATE),))
    news = [header(search="y"), header(search="n"), level]
    kept = list(kept_of([header(x="n")] * 1000 + news * 2, KNOWN_LABELS))
    assert len(kept) == 103
    assert kept[100:] == news
