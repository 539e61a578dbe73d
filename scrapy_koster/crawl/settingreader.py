"""How the value of a setting is read and checked, by kind of value.

Each function returns a ``Setting``: a default, and a function that reads a value and raises
ValueError for an invalid one.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from enum import Enum
from typing import Any

from scrapy.utils.misc import load_object

from scrapy_koster.protocol.override import Overrides, overrides_of
from scrapy_koster.protocol.printable import printable
from scrapy_koster.storage.setting import Setting, invalid

_LABEL = re.compile(r"[a-z*][a-z0-9_.*-]{0,63}")  # RFC 9651, 3.1.2: a key


def _setting(default: object, wanted: str, read: Callable[[Any], object]) -> Setting:
    """Return a setting whose error says what is *wanted*."""

    def checked(value: Any) -> object:
        try:
            return read(value)
        except (AttributeError, LookupError, TypeError, ValueError, OverflowError):
            raise invalid(value, wanted) from None

    return Setting(default, checked)


def _must(holds: bool) -> None:  # noqa: FBT001  # as in assert
    if not holds:
        raise ValueError


def secs(default: float, *, above: float = -1) -> Setting:
    """Return the setting of a number of seconds, 0 or more, or more than *above*."""

    def read(value: Any) -> float:
        _must(not isinstance(value, bool))
        number = float(value)
        _must(math.isfinite(number) and number >= 0 and number > above)
        return number

    least = "more than 0" if above == 0 else "0 or more"
    return _setting(default, f"a number of seconds, {least}", read)


def flag() -> Setting:
    """Return the setting of True or False; the default is False."""
    flags = {"1": True, "True": True, "true": True, "0": False, "False": False, "false": False}
    return _setting(False, "True or False", lambda value: flags[str(value)])  # noqa: FBT003


def one_of(kind: type[Enum], default: str) -> Setting:
    """Return the setting of a member of *kind*, by its value."""
    return _setting(default, f"one of {_choices(kind)}", kind)


def some_of(kind: type[Enum]) -> Setting:
    """Return the setting of a set of members of *kind*; the default is all."""
    default = tuple(member.value for member in kind)
    return _setting(
        default, f"a list of {_choices(kind)}", lambda value: frozenset(map(kind, _listed(value)))
    )


def keys(*default: str) -> Setting:
    """Return the setting of a list of keys of request.meta."""

    def read(value: Any) -> tuple[str, ...]:
        found = tuple(_listed(value))
        _must(all(isinstance(key, str) and key for key in found))
        return found

    return _setting(default, "a list of meta keys", read)


def labels() -> Setting:
    """Return the setting of a list of usage categories; each label is read once."""

    def read(value: Any) -> tuple[str, ...]:
        found = dict.fromkeys(label.strip() for label in _listed(value))
        _must(all(map(_LABEL.fullmatch, found)))
        return tuple(found)

    return _setting((), "a list of labels in lower case", read)


def _listed(value: Any) -> list[Any]:
    """Return the items of a list, or of a text with commas, as on the command line."""
    if isinstance(value, str):
        return [] if value in ("", "[]") else value.split(",")
    return list(value)


def text_or_none(wanted: str, is_valid: Callable[[Any], bool] = bool) -> Setting:
    """Return the setting of a text, or of a path. None, the default, and "" are none."""

    def read(value: Any) -> str | None:
        if value is None or value == "":  # as on the command line
            return None
        _must(isinstance(value, (str, os.PathLike)) and is_valid(value))
        return str(value)

    return _setting(None, wanted, read)


def overrides() -> Setting:
    """Return the setting of a list of overrides, or of its JSON."""

    def read(value: Any) -> Overrides:
        if isinstance(value, str):  # as on the command line
            try:
                value = json.loads(value) if value.strip() else []
            except RecursionError as error:
                raise ValueError(str(error)) from None
        return overrides_of(value)

    return Setting((), read)


def class_with(*has: str, default: str, is_not: str = "") -> Setting:
    """Return the setting of a class with the attributes *has*, and no base in module *is_not*."""

    def read(value: Any) -> type:
        try:
            loaded = load_object(value)
        except (ImportError, NameError, TypeError, ValueError) as error:
            wanted = f"a class or the path of one ({printable(str(error))})"
            raise invalid(value, wanted) from error
        if not isinstance(loaded, type):
            raise invalid(value, "a class or the path of one")
        if missing := [name for name in has if not hasattr(loaded, name)]:
            raise invalid(value, f"a class with {', '.join(missing)}")
        if is_not in (base.__module__ for base in loaded.__mro__):
            raise invalid(value, "another class than the one that falls back to it")
        return loaded

    return Setting(default, read)


def _choices(kind: type[Enum]) -> str:
    return ", ".join(repr(member.value) for member in kind)
