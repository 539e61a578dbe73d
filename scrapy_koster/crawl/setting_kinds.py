"""Functions that return a ``Setting``, by kind of value.

The ``read`` of the setting returns the value to use, or raises an error for an invalid value.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from scrapy.utils.misc import load_object

from scrapy_koster.protocol.override import Override, overrides_of
from scrapy_koster.storage.port import Setting, invalid


def _must(holds: bool) -> None:  # noqa: FBT001  # as in assert
    if not holds:
        raise ValueError


def secs(default: float, *, above: float = -1) -> Setting:
    """Return the setting of a number of seconds: 0 or more, and more than *above*."""

    def read(value: Any) -> float:
        number = math.nan if isinstance(value, bool) else float(value)
        _must(0 <= number < math.inf and number > above)
        return number

    least = "more than 0" if above == 0 else "0 or more"
    return Setting(default, read, wanted=f"a number of seconds, {least}")


def whole_or_none() -> Setting:
    """Return the setting of a whole number, 1 or more. The default is None."""
    whole = Setting.whole(1, least=1)
    read = whole.read
    return replace(whole, default=None, read=lambda value: None if value is None else read(value))


def flag() -> Setting:
    """Return the setting of True or False; the default is False."""
    flags = {"1": True, "True": True, "true": True, "0": False, "False": False, "false": False}
    return Setting(False, lambda value: flags[str(value)], wanted="True or False")  # noqa: FBT003


def one_of(kind: type[Enum], default: str | None) -> Setting:
    """Return the setting of a member of *kind*. The user sets the value of the member, or None."""
    values = ", ".join(repr(member.value) for member in kind)
    read = {None: None, **{member.value: member for member in kind}}.__getitem__
    return Setting(default, read, wanted=f"one of {values}")


def list_of(wanted: str, pattern: str, default: Sequence[str] = ()) -> Setting:
    """Return the setting of a list. On the command line, it is a text with commas, or JSON.

    The items, without spaces around them, must match *pattern*. Duplicates are removed.
    """

    def read(value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = json.loads(value or "[]") if value[:1] in ("", "[") else value.split(",")
        items = dict.fromkeys(item.strip() for item in value)
        _must(all(re.fullmatch(pattern, item) for item in items))
        return tuple(items)

    return Setting(default, read, wanted=f"a list of {wanted}")


def text_or_none(wanted: str, is_valid: Callable[[Any], bool] = bool) -> Setting:
    """Return the setting of a text or a path. The default is None, and "" means None."""

    def read(value: Any) -> str | None:
        if value is None or value == "":  # "" on the command line
            return None
        _must(isinstance(value, (str, os.PathLike)) and is_valid(value))
        return str(value)

    return Setting(None, read, wanted=wanted)


def overrides(value: Any) -> tuple[Override, ...]:
    """Return the overrides in *value*, a list or the JSON text of a list."""
    if isinstance(value, str):  # as on the command line
        value = json.loads(value.strip() or "[]") if value.strip()[:1] in ("", "[") else value
    return overrides_of(value)


def class_with(default: str, *has: str, is_not: str = "") -> Setting:
    """Return a setting whose value is a class, or the path of a class.

    The class must have the attributes *has*. Neither the class nor a base class may be in the
    module *is_not*.
    """

    def read(value: Any) -> type:
        try:
            loaded = load_object(value)
        except NameError as error:
            # load_object replaces an AttributeError by a NameError. For a wrong name in
            # scrapy_koster, the text of the AttributeError may suggest a similar name.
            raise ValueError(str(error.__context__ or error)) from None
        if not isinstance(loaded, type):
            raise invalid(value, "a class or the path of one")
        if missing := [name for name in has if not hasattr(loaded, name)]:
            raise invalid(value, f"a class with {', '.join(missing)}")
        if is_not in (base.__module__ for base in loaded.__mro__):
            raise invalid(value, "another class than the one that falls back to it")
        return loaded

    return Setting(default, read)
