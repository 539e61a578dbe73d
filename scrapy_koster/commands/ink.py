"""Colours on a terminal, plain text everywhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TextIO

from scrapy_koster.protocol.printable import escaped

_OF_AN_INK = re.compile(r"(\x1b\[(?:31;1|33;1|32;1|36|1|2|0)m)")


@dataclass(frozen=True, slots=True)
class Ink:
    """Puts ANSI colours around text, or none. What it paints is made printable."""

    coloured: bool

    def red(self, text: str) -> str:
        """What is forbidden or wrong."""
        return self._painted("31;1", text)

    def yellow(self, text: str) -> str:
        """What asks for attention."""
        return self._painted("33;1", text)

    def green(self, text: str) -> str:
        """What is allowed or right."""
        return self._painted("32;1", text)

    def cyan(self, text: str) -> str:
        """What is good to know."""
        return self._painted("36", text)

    def bold(self, text: str) -> str:
        """What the eye should find."""
        return self._painted("1", text)

    def dim(self, text: str) -> str:
        """What stands around it."""
        return self._painted("2", text)

    def _painted(self, code: str, text: str) -> str:
        text = escaped(text)
        return f"\x1b[{code}m{text}\x1b[0m" if self.coloured else text

    def harmless(self, line: str) -> str:
        """Return *line* with escapes for whatever is not printable and none of this ink's codes."""
        if not self.coloured:
            return escaped(line)
        # Every other part is a code: split() gives what is between them, and them.
        parts = _OF_AN_INK.split(line)
        return "".join(part if number % 2 else escaped(part) for number, part in enumerate(parts))


PLAIN = Ink(coloured=False)


def ink_for(stream: TextIO, environ: Mapping[str, str]) -> Ink:
    """Return the ink for *stream*, in the order of precedence that CPython has."""
    if environ.get("NO_COLOR"):
        return PLAIN
    if environ.get("FORCE_COLOR"):
        return Ink(coloured=True)
    return Ink(coloured=environ.get("TERM") != "dumb" and stream.isatty())
