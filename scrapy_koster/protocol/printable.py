"""Section 6: what a server sent, made harmless for logs and terminals."""

from __future__ import annotations


def printable(text: str | bytes, limit: int = 200) -> str:
    """Return *text* with escapes for what is not printable, as repr() has them.

    The result has *limit* characters at most; "..." stands for what is cut.
    Octets are shown as latin-1.
    """
    start = text[: limit + 1]
    if isinstance(start, bytes):
        start = start.decode("latin-1")
    shown = escaped(start)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def escaped(text: str) -> str:
    """Return all of *text* with escapes for what is not printable."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
