"""Usage preferences: the allowed uses of a page.

Preferences are read and combined by "A Vocabulary For Expressing AI Usage Preferences"
(draft-ietf-aipref-vocab, called vocab here), a working draft of August 2026. Parts of the draft
lack consensus, so statements keep their text and unknown labels. Version 08, of September 2026, is
not followed, except for the label "ai-use".
"""

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
"""Labels for Content-Signal, for TDMRep, and for the word "noimageai", in this order."""
USE = "use"
"""The label of Content-Signal for a ``Level``, which is not among the known labels."""
KNOWN_LABELS = frozenset({TRAIN_AI, SEARCH, AI_USE, AI_INPUT, TDM, NO_IMAGE_AI})

# Limits for a statement (section 6 of the 1996 draft).
VALUE_BYTES = 131_072
"""Limit for a value. A longer value is not parsed, and disallows all known labels."""
_TEXT_CHARS = 200
_OTHERS_KEPT = 20
_STATEMENTS_SHOWN = 100
_LABEL_CHARS = 64


class Preference(Enum):
    """Preference about one use of a page: allow, disallow or unknown (vocab, 3)."""

    ALLOW = "y"
    DISALLOW = "n"
    UNKNOWN = "unknown"


class Level(Enum):
    """Level of ``use=`` in a Content-Signal: what a crawler may keep and reuse of a page.

    The documentation of Cloudflare ("robots.txt setting", "Content use signal") has "one of three
    values, from least to most permissive".
    """

    IMMEDIATE = "immediate"  # "Interact, but store and reuse nothing."
    REFERENCE = "reference"  # "Index, excerpt, and link back."
    FULL = "full"  # "Summarize and reproduce."


Stated: TypeAlias = tuple[tuple[str, Preference | Level], ...]
"""Pairs of a label and its preference, ALLOW or DISALLOW, or of USE and a level."""


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
    """The statement, such as ``Content-Usage: train-ai=n``, printable and cut to 200 characters."""
    stated: Stated = ()
    """The preferences. Empty for a License line and for an invalid statement, for example."""
    line: int | None = None
    """Line number in the robots.txt, from 1. None for headers and META tags."""
    digest: str | None = None
    """Digest of the robots.txt as received ("sha256:..."). None for headers and META tags."""

    @property
    def preferences(self) -> dict[str, Preference | Level]:
        """Preferences of the statement, by label. The label "use" has a level."""
        return dict(self.stated)

    def __str__(self) -> str:
        """Return the place and the text in one line."""
        if self.line is not None:
            return f"line {self.line} '{self.text}' of robots.txt"
        return f"the {self.origin.value} '{self.text}'"

    def as_line(self) -> Line | None:
        """Return the line of the robots.txt, possibly cut, or None for headers and META tags."""
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

    ``str(usage)`` is safe to print, for example ``search=y, train-ai=n``.
    """

    statements: tuple[Statement, ...] = ()
    """The statements about the page: from robots.txt, headers and META tags."""
    labels: frozenset[str] = field(default=KNOWN_LABELS, kw_only=True)
    """The known labels. The preference about any other label is UNKNOWN."""

    def preference(self, label: str) -> Preference:
        """Return the preference about one use, such as "train-ai" (vocab, 5 and 5.1).

        The preference about an unknown label is UNKNOWN. KOSTER_USAGE_PURPOSES adds known labels.
        """
        # 5.1: "If any statement of preference indicates that the usage is disallowed, the result is
        # that the usage is disallowed. Otherwise, if any statement of preference allows the
        # usage, the result is that the usage is allowed. Otherwise, [it] is unknown."
        said = self._said(label) if label in self.labels else ()
        either = (Preference.DISALLOW, Preference.ALLOW)
        return next((each for each in either if each in said), Preference.UNKNOWN)

    def preferences(self) -> dict[str, Preference]:
        """Return the preferences by known label, in alphabetical order. UNKNOWN is left out."""
        found = {label: self.preference(label) for label in sorted(self.labels)}
        return {label: each for label, each in found.items() if each is not Preference.UNKNOWN}

    @property
    def use(self) -> tuple[str, ...]:
        """The levels of ``use=`` that statements have, the least permissive first.

        They are "immediate", "reference" and "full". They decide nothing: no standard relates a
        level to the labels.
        """
        return tuple(level.value for level in Level if level in self._said(USE))

    def _said(self, label: str) -> set[Preference | Level]:
        return {each for one in self.statements for name, each in one.stated if name == label}

    def to_dict(self) -> dict[str, Any]:
        """Return the usage as a dict for JSON, with its first hundred statements."""
        return {
            "preferences": {label: each.value for label, each in self.preferences().items()},
            "use": list(self.use),
            "statements": [each.to_dict() for each in self.statements[:_STATEMENTS_SHOWN]],
        }

    def __str__(self) -> str:
        """Return the preferences in one line, in the syntax of vocab (6)."""
        return worded(self.preferences().items())

    def __repr__(self) -> str:
        return f"<Usage {self}>"


def worded(stated: Iterable[tuple[str, Preference | Level]]) -> str:
    """Return preferences in the syntax of vocab (6)."""
    return ", ".join(f"{label}={preference.value}" for label, preference in stated)


# Reading the values of statements.

_WORDS = {"y": Preference.ALLOW, "n": Preference.DISALLOW}
_SIGNAL_WORDS = {**_WORDS, "yes": Preference.ALLOW, "no": Preference.DISALLOW}
_LEVELS = {level.value: level for level in Level}
SIGNAL_LABELS = {"ai-train": TRAIN_AI}
"""The labels of Content-Signal that have another name in the vocabulary."""


def preferences_in(
    value: bytes, labels: Collection[str] = KNOWN_LABELS, *, is_signal: bool = False
) -> Stated:
    """Return the preferences in a Content-Usage value (vocab, 6.5), or in a Content-Signal value.

    A Content-Signal can have a Level, too, with the label USE. Labels outside of *labels* are kept
    if they are among the first twenty and have at most 64 characters. A value longer than
    VALUE_BYTES disallows all *labels*.
    """
    words, names = (_SIGNAL_WORDS, SIGNAL_LABELS) if is_signal else (_WORDS, {})
    if len(value) > VALUE_BYTES:
        return tuple((label, Preference.DISALLOW) for label in sorted(labels))
    found: dict[str, Preference | Level] = {}
    others = 0
    for key, token in (tokens_in(value) or {}).items():
        stated = (_LEVELS if is_signal and key == USE else words).get(token or "")
        # "Otherwise, the preference for that category is unknown": if the value is not a Token, or
        # is a Token without a meaning.
        if stated is None:
            continue
        label = names.get(key, key)
        if label not in labels and isinstance(stated, Preference):
            others += 1
            if others > _OTHERS_KEPT or len(label) > _LABEL_CHARS:
                continue
        if found.get(label) is not Preference.DISALLOW:
            found[label] = stated
    # Input to AI (retrieval, grounding) is a use of AI, so a "no" to ai-input counts for ai-use.
    if found.get(AI_INPUT) is Preference.DISALLOW:
        found[AI_USE] = Preference.DISALLOW
    return tuple(found.items())


def tokens_in(value: bytes) -> dict[str, str | None] | None:
    """Return the Tokens of a Dictionary (RFC 9651) by key, with None for a value of another type.

    Returns None for an invalid Dictionary (RFC 9651, 4.2.2; vocab, 6). Of duplicate keys, the last
    counts. Parameters are ignored. The caller must check that VALUE_BYTES is not exceeded.
    """
    try:
        found: Any = http_sf.parse(value, tltype="dictionary")
    except Exception:  # noqa: BLE001  # "preferences are unknown" (vocab, 6.5.1)
        return None
    items = ((key, item) for key, (item, _) in found.items())  # without parameters
    return {key: str(item) if isinstance(item, http_sf.Token) else None for key, item in items}


def line_text(field: bytes, value: bytes) -> str:
    """Return a line or a header as the ``text`` of a Statement."""
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
    """Do not request a page that the robots.txt disallows for a purpose. Also drop items (DROP)."""


class UsageUnknown(Enum):
    """KOSTER_USAGE_UNKNOWN: the action for items if a preference about a purpose is unknown."""

    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChoice:
    """The settings of a crawl for usage preferences."""

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
        """Whether a page is not requested if its robots.txt disallows a purpose."""
        return self.action is UsageAction.REFUSE and bool(self.purposes)

    @property
    def drops(self) -> bool:
        """Whether items of a page that disallows a purpose are dropped."""
        return self.action is not UsageAction.REPORT and bool(self.purposes)

    def unfit(self, usage: Usage) -> tuple[str, Statement | None] | None:
        """Return the first purpose that a page disallows, with the disallowing statement, or None.

        If the page disallows no purpose and KOSTER_USAGE_UNKNOWN is "drop", return the first
        purpose with an UNKNOWN preference, and None in place of the statement.
        """
        found = self.disallowed(usage.statements)
        if found is not None or self.unknown is UsageUnknown.KEEP:
            return found
        known = usage.preferences()
        return next(((purpose, None) for purpose in self.purposes if purpose not in known), None)

    def disallowed(self, statements: Sequence[Statement]) -> tuple[str, Statement] | None:
        """Return the first disallowed purpose, with the first statement against it, or None."""
        pairs = ((purpose, each) for purpose in self.purposes for each in statements)
        against = (pair for pair in pairs if (pair[0], Preference.DISALLOW) in pair[1].stated)
        return next(against, None)


def kept_of(statements: Iterable[Statement], labels: Collection[str]) -> Iterator[Statement]:
    """Yield the first hundred statements, and later statements with a new preference.

    A preference about one of *labels*, or a level, is new if no earlier statement has the same.
    """
    seen: set[tuple[str, Preference | Level]] = set()
    for number, each in enumerate(statements):
        news = {pair for pair in each.stated if pair[0] in labels or pair[0] == USE} - seen
        if number < _STATEMENTS_SHOWN or news:
            seen |= news
            yield each
