"""Usage preferences: the allowed uses of a page.

The model and the process of combination are those of "A Vocabulary For Expressing AI Usage
Preferences" (draft-ietf-aipref-vocab, called vocab here), a working draft of August 2026 of which
parts lack consensus. So statements keep their text and unknown labels. Of its
version 08, of September 2026, only the label "ai-use" is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

import http_sf

from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.wording import shown

TRAIN_AI, SEARCH, AI_USE = "train-ai", "search", "ai-use"
"""The labels of the vocabulary (vocab, 6.1)."""
AI_INPUT, TDM, NO_IMAGE_AI = "ai-input", "tdm", "noimageai"
"""Labels of Content-Signal and of TDMRep, and a label for the training of AI with images."""
KNOWN_LABELS = frozenset({TRAIN_AI, SEARCH, AI_USE, AI_INPUT, TDM, NO_IMAGE_AI})

# Section 6 of the draft: limits for a statement.
VALUE_BYTES = 131_072
"""A longer value is not read, and disallows the known labels."""
_TEXT_CHARS = 200
_OTHERS_KEPT = 20
_STATEMENTS_SHOWN = 100
_LABEL_CHARS = 64


class Preference(Enum):
    """Preference about one use of a page: allow, disallow or unknown (vocab, 3)."""

    ALLOW = "y"
    DISALLOW = "n"
    UNKNOWN = "unknown"


Stated: TypeAlias = tuple[tuple[str, Preference], ...]
"""Labels with their preferences. Unknown preferences are left out."""


class Origin(Enum):
    """Where a statement was found."""

    ROBOTS_TXT = "robots.txt"
    HEADER = "header"
    META = "META tag"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of preferences, and its origin. The texts are safe to print."""

    origin: Origin
    text: str
    """The statement, made printable and cut to 200 characters: ``Content-Usage: train-ai=n``."""
    stated: Stated = ()
    """The preferences by label. Empty for a License and for an invalid statement."""
    line: int | None = None
    """Line number in the robots.txt, from 1. None for headers and META tags."""
    digest: str | None = None
    """Digest of the robots.txt: "sha256:" and the SHA-256 of the body as received."""

    @property
    def preferences(self) -> dict[str, Preference]:
        """Preferences of the statement, by label."""
        return dict(self.stated)

    def __str__(self) -> str:
        """Return the place and the text, in a line."""
        if self.line is not None:
            return f"line {self.line} '{self.text}' of robots.txt"
        return f"the {self.origin.value} '{self.text}'"

    def as_line(self) -> Line | None:
        """Return the statement as a line (its text may be cut); None for headers and META tags."""
        if self.line is None:
            return None
        field, _, value = self.text.partition(": ")
        return Line(self.line, field.lower().encode(), value.encode())

    def to_dict(self) -> dict[str, Any]:
        """Return the statement as a dict for JSON."""
        return {
            "source": self.origin.value,
            "line": self.line,
            "text": self.text,
            "digest": self.digest,
            "preferences": {label: preference.value for label, preference in self.stated},
        }


@dataclass(frozen=True, repr=False)
class Usage:
    """All preferences about the use of a page, combined. Immutable.

    ``str(usage)`` is safe to print: ``train-ai=n, search=y``.
    """

    statements: tuple[Statement, ...] = ()
    """The statements about the page: from robots.txt, headers and META tags."""
    labels: frozenset[str] = field(default=KNOWN_LABELS, kw_only=True)
    """Known labels. The preference about another label is unknown."""

    def preference(self, label: str) -> Preference:
        """Return the preference about one use, such as "train-ai" (vocab, 5 and 5.1).

        UNKNOWN for unknown labels, too: add yours to KOSTER_USAGE_PURPOSES.
        """
        said = {each for one in self.statements for name, each in one.stated if name == label}
        # 5.1: "If any statement of preference indicates that the usage is disallowed, the result is
        # that the usage is disallowed. Otherwise, if any statement of preference allows the
        # usage, the result is that the usage is allowed. Otherwise, [it] is unknown."
        if label not in self.labels or not said:
            return Preference.UNKNOWN
        return Preference.DISALLOW if Preference.DISALLOW in said else Preference.ALLOW

    def preferences(self) -> dict[str, Preference]:
        """Return the preferences of the known labels, in their order, without UNKNOWN ones."""
        stated = {label for each in self.statements for label, _ in each.stated}
        return {label: self.preference(label) for label in sorted(stated & self.labels)}

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as a dict for JSON, with its first hundred statements."""
        return {
            "preferences": {label: each.value for label, each in self.preferences().items()},
            "statements": [each.to_dict() for each in self.statements[:_STATEMENTS_SHOWN]],
        }

    def __str__(self) -> str:
        """Return the preferences in one line, in the syntax of vocab (6)."""
        return worded(self.preferences().items())

    def __repr__(self) -> str:
        return f"<Usage {self}>"


def worded(stated: Iterable[tuple[str, Preference]]) -> str:
    """Return preferences in the syntax of vocab (6)."""
    return ", ".join(f"{label}={preference.value}" for label, preference in stated)


# Statements as they are written.

_WORDS = {"y": Preference.ALLOW, "n": Preference.DISALLOW}
_SIGNAL_WORDS = {**_WORDS, "yes": Preference.ALLOW, "no": Preference.DISALLOW}
SIGNAL_LABELS = {"ai-train": TRAIN_AI}
"""The labels of Content-Signal, renamed here."""


def preferences_in(value: bytes, labels: Collection[str] = KNOWN_LABELS) -> Stated:
    """Return the preferences in the value of a Content-Usage (vocab, 6.5).

    The result has *labels* and the first twenty other labels. A value too long to be read
    disallows *labels*.
    """
    return _kept(value, _WORDS, {}, labels)


def signals_in(value: bytes, labels: Collection[str] = KNOWN_LABELS) -> Stated:
    """Return the preferences in the value of a Content-Signal, such as "ai-train=no"."""
    return _kept(value, _SIGNAL_WORDS, SIGNAL_LABELS, labels)


def tokens_in(value: bytes) -> dict[str, str | None] | None:
    """Return the Tokens in a Dictionary of RFC 9651 by key; a member of another type is None.

    Return None for an invalid Dictionary (RFC 9651, 4.2.2; vocab, 6). Check the length before the
    call (VALUE_BYTES). Of duplicate keys, the last counts. Parameters are disregarded.
    """
    try:
        found = http_sf.parse(value, tltype="dictionary")
    except Exception:  # noqa: BLE001  # "preferences are unknown" (vocab, 6.5.1)
        return None
    assert isinstance(found, dict)
    return {key: _token(member) for key, member in found.items()}


def _kept(
    value: bytes, words: dict[str, Preference], names: dict[str, str], labels: Collection[str]
) -> Stated:
    if len(value) > VALUE_BYTES:
        return tuple((label, Preference.DISALLOW) for label in sorted(labels))
    found: dict[str, Preference] = {}
    others = 0
    for key, token in (tokens_in(value) or {}).items():
        # "Otherwise, the preference for that category is unknown": values that are not Tokens,
        # and Token values that are other than "y" or "n".
        if token is None or token not in words:
            continue
        label, preference = names.get(key, key), words[token]
        if label not in labels:
            others += 1
            if others > _OTHERS_KEPT or len(label) > _LABEL_CHARS:
                continue
        if found.get(label) is not Preference.DISALLOW:
            found[label] = preference
    # Input to AI, such as for retrieval and grounding, is a use of AI.
    if found.get(AI_INPUT) is Preference.DISALLOW:
        found[AI_USE] = Preference.DISALLOW
    return tuple(found.items())


def _token(member: object) -> str | None:
    item = member[0] if isinstance(member, tuple) else member
    return str(item) if isinstance(item, http_sf.Token) else None


def line_text(field: bytes, value: bytes) -> str:
    """Return the text of a line or a header for a Statement."""
    name = field.decode("latin-1").title()
    return printable(f"{name}: {shown(value, _TEXT_CHARS)}", _TEXT_CHARS)


# The actions of a crawl.


class UsageAction(Enum):
    """KOSTER_USAGE_ACTION: the action if a page disallows a purpose of the crawl."""

    REPORT = "report"
    """Count and report the page."""
    DROP = "drop"
    """Drop the items of the page."""
    REFUSE = "refuse"
    """Do not request a page that the robots.txt disallows for a purpose; drop items, too."""


class UsageUnknown(Enum):
    """KOSTER_USAGE_UNKNOWN: the action for items of pages without preferences."""

    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChoice:
    """The purposes of a crawl, and its actions on preferences."""

    purposes: tuple[str, ...] = ()
    action: UsageAction = UsageAction.REPORT
    unknown: UsageUnknown = UsageUnknown.KEEP
    field: str | None = None

    @property
    def labels(self) -> frozenset[str]:
        """The labels that are known to this crawl."""
        return KNOWN_LABELS.union(self.purposes)

    @property
    def is_on(self) -> bool:
        """Whether the crawl looks for preferences."""
        return bool(self.purposes) or self.field is not None

    @property
    def refuses(self) -> bool:
        """Whether requests are refused."""
        return self.action is UsageAction.REFUSE and bool(self.purposes)

    @property
    def drops(self) -> bool:
        """Whether items are dropped."""
        return self.action is not UsageAction.REPORT and bool(self.purposes)

    def unfit(self, usage: Usage) -> tuple[str, Statement | None] | None:
        """Return the first purpose that items of a page may not serve, with the statement.

        None if items may serve every purpose. Without a statement, the preference is unknown and
        KOSTER_USAGE_UNKNOWN drops the items.
        """
        unknown = None
        for purpose in self.purposes:
            if statement := _disallowing(usage.statements, purpose):
                return purpose, statement
            if (
                self.unknown is UsageUnknown.DROP
                and usage.preference(purpose) is Preference.UNKNOWN
            ):
                unknown = unknown or (purpose, None)
        return unknown

    def disallowed(self, statements: Sequence[Statement]) -> Statement | None:
        """Return the first of *statements* that disallows a purpose, or None."""
        found = (_disallowing(statements, purpose) for purpose in self.purposes)
        return next(filter(None, found), None)


def _disallowing(statements: Sequence[Statement], purpose: str) -> Statement | None:
    pair = purpose, Preference.DISALLOW
    return next((each for each in statements if pair in each.stated), None)


def kept_of(statements: Iterable[Statement], labels: Collection[str]) -> Iterator[Statement]:
    """Yield the first hundred statements, and later ones that change the combined result."""
    seen: set[tuple[str, Preference]] = set()
    for number, each in enumerate(statements):
        news = {pair for pair in each.stated if pair[0] in labels} - seen
        if number < _STATEMENTS_SHOWN or news:
            seen |= news
            yield each
