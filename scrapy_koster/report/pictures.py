"""The pictures of the page, as SVG: each beside the numbers that it shows.

Nothing in them is told by colour alone: parts have patterns and stand in the
order of their table, lines have dashes and marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from markupsafe import Markup

_WIDTH = 720
_BAR = 34
_ROW = 24
_LABEL = 230
_NUMBER = 90
_GAP = 2
_LEAST = 3
_HEIGHT = 150
_BINS = 120
_BINS_LEAST = 3
_WIDE = 1440
_MARKS = 24
_WIDEST_DAY = 90

Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Picture:
    """A picture, and its table."""

    name: str
    title: str
    about: str
    svg: Markup
    heads: tuple[str, ...]
    rows: list[tuple[object, ...]]
    parts: list[str]
    """The class of each part, where the table is the legend too."""
    series: bool = False
    """Whether it is as wide as the page."""
    legend: tuple[str, ...] = ()
    """The class of each series, if it is not told by a line."""


def whole(name: str, title: str, about: str, parts: Sequence[tuple[str, int, str]]) -> Picture:
    """Return one bar of *parts*: what it is, how many, and its class."""
    total = sum(count for _, count, _ in parts)
    shapes, x = [], 0.0
    for _, count, key in parts:
        if count:
            width = max(_LEAST, (_WIDTH - _LEAST * len(parts)) * count / total)
            shapes.append(_rect(x, 0, width - _GAP, _BAR, key))
            x += width
    rows: list[tuple[object, ...]] = [
        (what, count, f"{100 * count / total:.1f} %" if total else "") for what, count, _ in parts
    ]
    return Picture(
        name,
        title,
        about,
        _svg(name, title, _BAR, shapes),
        ("", "count", "share"),
        rows,
        [key for _, _, key in parts],
    )


def bars(name: str, title: str, about: str, counts: dict[str, int], most: int = 8) -> Picture:
    """Return a bar for each of *counts*; the last is for all that are beyond *most*."""
    shown = list(counts.items())
    if len(shown) > most:
        rest = sum(count for _, count in shown[most - 1 :])
        shown = [*shown[: most - 1], ("others", rest)]
    longest = max((count for _, count in shown), default=0) or 1
    shapes = []
    for number, (what, count) in enumerate(shown):
        y = number * _ROW
        width = (_WIDTH - _LABEL - _NUMBER) * count / longest
        shapes.append(_text(_LABEL - 10, y + 16, what[:32], "end"))
        shapes.append(_rect(_LABEL, y + 3, max(width, 1), _ROW - 7, "plain"))
        shapes.append(_text(_LABEL + width + 8, y + 16, f"{count:,}"))
    svg = _svg(name, title, max(len(shown), 1) * _ROW, shapes)
    return Picture(name, title, about, svg, ("", "count"), list(shown), [])


def timeline(
    name: str,
    title: str,
    about: str,
    series: Sequence[str],
    minutes: Sequence[tuple[int, ...]],
) -> Picture:
    """Return a line for each of *series*; *minutes* are a minute and a number for each."""
    first = minutes[0][0] if minutes else 0
    last = minutes[-1][0] if minutes else 0
    per_bin = (last - first) // _BINS + 1
    bins = [[0] * len(series) for _ in range((last - first) // per_bin + 1)]
    for minute, *counts in minutes:
        at = bins[(minute - first) // per_bin]
        for n, count in enumerate(counts):
            at[n] += count
    if len(bins) < _BINS_LEAST:
        return bars(
            name, title, about, dict(zip(series, map(sum, zip(*bins, strict=True)), strict=True))
        )
    top = max((max(each) for each in bins), default=0) or 1
    shapes = [_text(0, 14, f"{top:,}"), _line([(0, 20), (_WIDE, 20)], "axis")]
    shapes.append(_line([(0, _HEIGHT), (_WIDE, _HEIGHT)], "axis"))
    step = _WIDE / max(len(bins) - 1, 1)
    for n in range(len(series)):
        points = [(i * step, _HEIGHT - (_HEIGHT - 20) * b[n] / top) for i, b in enumerate(bins)]
        shapes.append(_line(points, f"line{n}"))
        shapes.extend(_mark(x, y, n) for x, y in points[:: len(points) // _MARKS + 1])
    minutes_long = f"{per_bin} min" if per_bin > 1 else "minute"
    rows: list[tuple[object, ...]] = [(f"+{i * per_bin} min", *b) for i, b in enumerate(bins)]
    return Picture(
        name,
        title,
        f"{about}, per {minutes_long} since the start.",
        _svg(name, title, _HEIGHT + 8, shapes, _WIDE),
        ("time", *series),
        rows,
        [],
        series=True,
    )


def strip(
    name: str, title: str, about: str, parts: Sequence[tuple[str, str]], days: Sequence[Row]
) -> Picture:
    """Return a column for each of *days*, from the bottom up *parts*: what it is, and its class.

    A day is its name and a number for each part. If there are too many days, a column is
    for several of them.
    """
    each = -(-len(days) // _BINS) or 1
    bins = [
        [sum(counts) for counts in zip(*(day[1:] for day in days[at : at + each]), strict=True)]
        for at in range(0, len(days), each)
    ]
    top = max(map(sum, bins), default=0) or 1
    step = min(_WIDE / max(len(bins), 1), _WIDEST_DAY)
    shapes = [_text(0, 14, f"{top:,}"), _line([(0, _HEIGHT), (_WIDE, _HEIGHT)], "axis")]
    for n, counts in enumerate(bins):
        y = float(_HEIGHT)
        for (_, key), count in zip(parts, counts, strict=True):
            height = (_HEIGHT - 20) * count / top
            y -= height
            if count:
                shapes.append(_rect(n * step, y, step - _GAP, max(height, 1), key))
    if days:
        shapes.append(_text(0, _HEIGHT + 18, days[0][0]))
        shapes.append(_text(len(bins) * step, _HEIGHT + 18, days[-1][0], "end"))
    per = f" Each column is {each} days." if each > 1 else ""
    return Picture(
        name,
        title,
        f"{about}{per}",
        _svg(name, title, _HEIGHT + 24, shapes if len(bins) > 1 else shapes[:-1], _WIDE),
        ("day", *(what for what, _ in parts)),
        list(days),
        [],
        series=True,
        legend=tuple(key for _, key in parts),
    )


def swatch(key: str) -> Markup:
    """Return the piece that stands for a part of a whole."""
    return Markup('<svg class="key" viewBox="0 0 36 16" aria-hidden="true">{}</svg>').format(
        _rect(0, 0, 36, 16, key)
    )


def key(number: int) -> Markup:
    """Return the piece of line that stands for a series."""
    parts = [_line([(0, 8), (36, 8)], f"line{number}"), _mark(18, 8, number)]
    return Markup('<svg class="key" viewBox="0 0 36 16" aria-hidden="true">{}</svg>').format(
        Markup("").join(parts)
    )


def _svg(
    name: str, title: str, height: float, shapes: Sequence[Markup], width: int = _WIDTH
) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-labelledby="{}-title">'
        '<title id="{}-title">{}. The table below has the numbers.</title>{}</svg>'
    ).format(width, height, name, name, title, Markup("").join(shapes))


def _rect(x: float, y: float, width: float, height: float, key: str) -> Markup:
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>').format(
        x, y, max(width, 0.5), height, key
    )


def _text(x: float, y: float, text: str, key: str = "") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>').format(x, y, key, text)


def _line(points: Sequence[tuple[float, float]], key: str) -> Markup:
    if len(points) == 1:
        points = [*points, (points[0][0] + 1, points[0][1])]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return Markup('<polyline points="{}" class="{}"/>').format(path, key)


def _mark(x: float, y: float, number: int) -> Markup:
    """Return a circle, a square or a triangle."""
    if number == 0:
        return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="4" class="mark0"/>').format(x, y)
    if number == 1:
        return _rect(x - 4, y - 4, 8, 8, "mark1")
    corners = [(x - 5, y + 4), (x + 5, y + 4), (x, y - 5), (x - 5, y + 4)]
    path = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
    return Markup('<polygon points="{}" class="mark2"/>').format(path)
