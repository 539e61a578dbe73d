"""The charts of the page, as SVG, each with the table of its numbers.

Each bar has a label, so no chart depends on its colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

_WIDTH = 720
_ROW = 24
_LABEL = 230
_NUMBER = 90
_STRIP = 48
_BINS = 120
_BARS_MOST = 8


@dataclass(frozen=True)
class Picture:
    """A chart, and its table."""

    name: str
    title: str
    about: str
    svg: Markup
    heads: tuple[str, ...]
    rows: list[tuple[object, ...]]


def bars(
    name: str, title: str, about: str, counts: Mapping[str, int], keys: Sequence[str] = ()
) -> Picture:
    """Return a bar for each of *counts*, with the classes *keys*; the last is for all others."""
    shown = list(counts.items())
    if len(shown) > _BARS_MOST:
        rest = sum(count for _, count in shown[_BARS_MOST - 1 :])
        shown = [*shown[: _BARS_MOST - 1], ("others", rest)]
    total, longest = sum(counts.values()), max(counts.values(), default=0) or 1
    shapes = []
    for number, (what, count) in enumerate(shown):
        y, width = number * _ROW, (_WIDTH - _LABEL - _NUMBER) * count / longest
        shapes += [
            _text(_LABEL - 10, y + 16, what[:32], "end"),
            _rect(_LABEL, y + 3, width, _ROW - 7, keys[number] if keys else "obeyed"),
            _text(_LABEL + width + 8, y + 16, f"{count:,}"),
        ]
    svg = _svg(name, title, max(len(shown), 1) * _ROW, shapes)
    rows: list[tuple[object, ...]] = [
        (what, count, f"{100 * count / total:.1f} %" if total else "") for what, count in shown
    ]
    return Picture(name, title, about, svg, ("", "count", "share"), rows)


def timeline(
    name: str, title: str, about: str, series: Sequence[str], minutes: Sequence[tuple[int, ...]]
) -> Picture:
    """Return columns over the time for each of *series*, each with its own scale.

    *minutes* are a minute and a number for each of *series*.
    """
    first, last = (minutes[0][0], minutes[-1][0]) if minutes else (0, 0)
    per_bin = (last - first) // _BINS + 1
    bins = [[0] * len(series) for _ in range((last - first) // per_bin + 1)]
    for minute, *counts in minutes:
        at = bins[(minute - first) // per_bin]
        at[:] = map(sum, zip(at, counts, strict=True))
    step = (_WIDTH - _LABEL) / len(bins)
    shapes = []
    for n, what in enumerate(series):
        bottom, top = (n + 1) * _STRIP, max(each[n] for each in bins)
        shapes.append(_text(_LABEL - 10, bottom - 4, f"{what} (at most {top:,})", "end"))
        for i, each in enumerate(bins):
            if each[n]:
                height = (_STRIP - 8) * each[n] / top
                x = _LABEL + i * step
                shapes.append(_rect(x, bottom - height, step * 0.9, height, "obeyed"))
    per = f"{per_bin} min" if per_bin > 1 else "minute"
    svg = _svg(name, title, len(series) * _STRIP, shapes)
    rows: list[tuple[object, ...]] = [(f"+{i * per_bin} min", *b) for i, b in enumerate(bins)]
    return Picture(name, title, f"{about}, per {per} since the start.", svg, ("", *series), rows)


def _svg(name: str, title: str, height: float, shapes: Sequence[Markup]) -> Markup:
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-labelledby="{}-title">'
        '<title id="{}-title">{}. The table below has the numbers.</title>{}</svg>'
    ).format(_WIDTH, height, name, name, title, Markup("").join(shapes))


def _rect(x: float, y: float, width: float, height: float, key: str) -> Markup:
    return Markup('<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/>').format(
        x, y, max(width, 0.5), height, key
    )


def _text(x: float, y: float, text: str, key: str = "") -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" class="{}">{}</text>').format(x, y, key, text)
