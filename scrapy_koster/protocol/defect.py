"""Wrong results and errors of a project's own parser. Only the result True allows a URL."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias, TypeVar

from scrapy_koster.protocol.printable import error_text
from scrapy_koster.protocol.reading import Reading

_T = TypeVar("_T")

Permission: TypeAlias = Callable[[str, str | bytes], bool]
"""A function that returns whether a URL (first argument) is allowed for a robot (second)."""


class ParserDefectError(TypeError):
    """A method of a parser has returned a value of a wrong type, or raised an error."""

    def __init__(self, parser: Any, method: str, does: str) -> None:
        kind = parser if isinstance(parser, type) else type(parser)
        super().__init__(f"{method}() of the parser {kind.__module__}.{kind.__qualname__} {does}")


def returned(parser: Any, method: str, value: object, wanted: str) -> ParserDefectError:
    """Return the error for a *value* that *method* of *parser* returned instead of *wanted*."""
    if isinstance(value, Coroutine):
        value.close()  # or Python warns that it was never awaited
    does = f"returned a value of type {type(value).__name__}, not {wanted}"
    return ParserDefectError(parser, method, does)


def guarded(parser: Any, method: str, call: Callable[[], _T]) -> _T:
    """Return the result of *call*, which calls *method* of *parser*.

    Raises ParserDefectError for any error except KeyboardInterrupt. For the caller, a
    CancelledError, StopIteration or IgnoreRequest of the parser would have another meaning.
    """
    try:
        return call()
    except (ParserDefectError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ParserDefectError(parser, method, f"raised {error_text(error)}") from error


def checked_parser(kind: type, made: Any) -> Any:
    """Return *made*, a parser from *kind*. Raises ParserDefectError if it has no ``allowed``."""
    if not callable(getattr(made, "allowed", None)):
        raise returned(kind, "from_crawler", made, "a parser")
    return made


def bools_of(parser: Any) -> Permission:
    """Return a function that calls ``allowed`` of *parser* and returns a bool.

    The function raises ParserDefectError if ``allowed`` fails or returns another type.
    """
    allowed: Permission = parser.allowed
    # For speed, our own method, which returns a bool, is not wrapped.
    if getattr(allowed, "__func__", None) is Reading.allowed:
        return allowed

    def checked(url: str, robot: str | bytes) -> bool:
        value: object = guarded(parser, "allowed", partial(allowed, url, robot))
        # Only True and False are accepted: a non-empty tuple, for example, need not mean yes.
        if value is True or value is False:
            return value
        raise returned(parser, "allowed", value, "True or False")

    return checked
