"""3.2.2: "the first match found is used", and how it is found among many rules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

# The theory. "In the order they occur in the record. The first match found is used":
# so a rule is never used behind one whose path its own path starts with. Of
#
#     0  Disallow: /a/b/c
#     1  Allow: /a/b
#     2  Disallow: /a
#     3  Disallow: /a/d
#     4  Disallow: /a/b/e
#
# 3 is not, for 2 matches all that it does, nor is 4, for 1 does. Of those in use that
# match a URL the innermost is the first in the file: had one around it come before, it
# would not be in use. So /a/b/x is decided by 1, which is in 2, and /a/x by 2.
#
# To decide, which rule it was does not matter. Outside of all rules a URL is allowed,
# and of the rules in use only those are kept that say another thing than the one around
# them: each turns the answer. Here 2 does (nothing is around it), 1 does, and 0 does;
# with "Disallow: /a/b" as 1, neither 1 nor 0 would. A URL that starts with none of them is
# allowed, with one disallowed, with two allowed again: /a/x starts with one (2), /a/b/x
# with two (1, 2), /a/b/c with three. It is disallowed where that number is odd.
#
# In sorted order all that starts with a path follows right behind it: what is around a
# path is on a stack, and what a URL starts with is the last path that is not behind the
# URL, or around that one. So all of this takes one sort, and a decision one search.

Paths: TypeAlias = tuple[tuple[str, ...], dict[str, str]]
"""The paths of a record that turn the answer, without the first slash: all of
them in order, and for each that stands within another one the one around it.

A URL is disallowed where the number of those that it starts with is odd.
"""

_NONE_NESTED: dict[str, str] = {}


def in_use(rules: list[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """Yield the places of the rules that can be the first match of a URL, by their paths.

    Each with the place of the one that is next around it, -1 where there is none.
    """
    downwards = range(len(rules) - 1, -1, -1)  # of equal paths the first stays
    places = {rules[place][1]: place for place in downwards}
    inside: list[int] = []
    for path in sorted(places):
        place = places[path]
        while inside and not path.startswith(rules[inside[-1]][1]):
            inside.pop()
        around = inside[-1] if inside else -1
        if place < around or around < 0:
            yield place, around
            inside.append(place)


def flatten(rules: list[tuple[str, str]]) -> Paths:
    """Return the paths of *rules* that turn the answer.

    This is the walk of ``in_use``, spelled out: it is what a site costs first, and by way
    of that generator it takes a third longer. ``allowed`` rests on this one and ``ruling``
    on the other; the tests hold them together.
    """
    if "" not in {disallows for disallows, _ in rules}:
        return _outermost(rules), _NONE_NESTED
    backwards = rules[::-1]  # of equal paths the first stays
    places = {path: place for place, (_, path) in enumerate(backwards)}
    turning: list[str] = []
    nested: dict[str, str] = {}
    inside: list[tuple[str, int, bool, str | None]] = []
    for path in sorted(places):
        place = places[path]
        disallowed = bool(backwards[place][0])
        if not inside or not path.startswith(inside[0][0]):
            # "If no match is found, the default assumption is that the URL is allowed."
            if disallowed:
                turning.append(path)
            inside = [(path, place, disallowed, path if disallowed else None)]
            continue
        while not path.startswith(inside[-1][0]):
            inside.pop()
        _, around, said, turn = inside[-1]
        if place < around:
            continue
        if disallowed is not said:
            turning.append(path)
            if turn is not None:
                nested[path] = turn
            turn = path
        inside.append((path, place, disallowed, turn))
    return tuple(turning), nested or _NONE_NESTED


def _outermost(rules: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return the paths of *rules* that are within no other: without an Allow these decide."""
    outermost: list[str] = []
    for path in sorted({path for _, path in rules}):
        if not outermost or not path.startswith(outermost[-1]):
            outermost.append(path)
    return tuple(outermost)


def starts_with_odd(path: str, prefixes: tuple[str, ...], nested: dict[str, str]) -> bool:
    """Return whether *path* starts with an odd number of the paths that turn the answer."""
    # All that *path* starts with are the last one before it, or around that.
    prefix = prefixes[bisect_right(prefixes, path) - 1]
    odd = path.startswith(prefix)
    while prefix in nested:
        prefix = nested[prefix]
        odd ^= path.startswith(prefix)
    return odd
