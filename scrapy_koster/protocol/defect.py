"""Wrong answers of a parser that somebody else wrote: only True opens a URL."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from scrapy_koster.protocol.reading import Decider
from scrapy_koster.protocol.strictest import Strictest

Permission: TypeAlias = Callable[[str, str | bytes], bool]
"""Whether a robot (the second) may fetch a URL (the first) of one site."""

_OURS = (Decider.allowed, Strictest.allowed)
"""These return a bool. They run for every request, so nothing checks them."""


class ParserDefectError(TypeError):
    """A method of a parser has returned a value of a wrong type."""

    def __init__(self, parser: Any, method: str, value: object, wanted: str) -> None:
        if isinstance(value, Coroutine):
            value.close()  # else Python warns that it was never awaited
        kind = parser if isinstance(parser, type) else type(parser)
        returned = type(value)
        super().__init__(
            f"{method}() of the parser {kind.__module__}.{kind.__qualname__} returned a value of"
            f" type {returned.__name__}, not {wanted}"
        )


def bools_of(parser: Any) -> Permission:
    """Return ``allowed`` of *parser*, which raises ParserDefectError unless it returns a bool."""
    allowed: Permission = parser.allowed
    if getattr(allowed, "__func__", None) in _OURS:
        return allowed

    def checked(url: str, robot: str | bytes) -> bool:
        value: object = allowed(url, robot)
        # By identity: what else is true, such as a tuple or text, need not mean yes.
        if value is True or value is False:
            return value
        raise ParserDefectError(parser, "allowed", value, "True or False")

    return checked
