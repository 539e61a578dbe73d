"""Settings by name, each checked as it is read."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy.settings import SETTINGS_PRIORITIES
from scrapy.utils.misc import load_object

from scrapy_koster.protocol.override import Overrides, overrides_of
from scrapy_koster.protocol.printable import printable

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_WRONG_CHARS = 1000
_LABEL = re.compile(r"[a-z*][a-z0-9_.*-]{0,63}")  # RFC 9651, 3.1.2: a key
_OVERRIDES = [
    {
        "site": "https://example.com",
        "allow": ["/private"],
        "reason": "the owner agreed by mail",
        "until": "2099-12-31",
    }
]

_E = TypeVar("_E", bound=Enum)


class SettingReader:
    """Settings by name, each with its default, checked.

    Each method raises ValueError for a value that is wrong; it names the setting and a right value.
    """

    def __init__(self, settings: BaseSettings, defaults: Mapping[str, Any]) -> None:
        self._settings = settings
        self._defaults = defaults

    def value(self, name: str) -> Any:
        """Return a setting as it was given."""
        return self._settings.get(name, self._defaults[name])

    def shown(self, name: str) -> str:
        """Return the value as a message shows it."""
        return printable(repr(self.value(name)))

    def _wrong(self, name: str, wanted: str) -> ValueError:
        right = f"{name} = {self._defaults[name]!r}"
        shown = self.shown(name)
        return ValueError(f"Invalid {name}: {shown} is not {wanted}. For example: {right}.")

    def is_set(self, name: str) -> bool:
        """Whether the user has set it."""
        priority = self._settings.getpriority(name) or SETTINGS_PRIORITIES["default"]
        return self._settings.get(name) is not None and priority > SETTINGS_PRIORITIES["default"]

    def secs(self, name: str, *, above: float = -1) -> float:
        """Return a number of seconds, 0 or more, or more than *above*."""
        value = self.value(name)
        try:
            secs = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            secs = math.nan
        if math.isfinite(secs) and secs >= 0 and secs > above:
            return secs
        wanted = "more than 0" if above == 0 else "0 or more"
        raise self._wrong(name, f"a number of seconds, {wanted}")

    def whole(self, name: str, *, least: int) -> int:
        """Return a whole number, *least* or more."""
        value = self.value(name)
        try:
            number = None if isinstance(value, (bool, float)) else int(value)
        except (TypeError, ValueError):
            number = None
        if number is None or number < least:
            raise self._wrong(name, f"a whole number, {least} or more")
        return number

    def flag(self, name: str) -> bool:
        """Return True or False."""
        try:
            return self._settings.getbool(name, self._defaults[name])
        except (TypeError, ValueError):
            raise self._wrong(name, "True or False") from None

    def path_or_none(self, name: str) -> str | None:
        """Return the path of a file, None for none."""
        value = self.value(name)
        if value is None or value == "":  # as on the command line
            return None
        if isinstance(value, (str, os.PathLike)):
            return str(value)
        raise ValueError(
            f"Invalid {name}: {self.shown(name)} is not the path of a file. For example:"
            f' {name} = "robots-report.html".'
        )

    def folder_or_none(self, name: str) -> str | None:
        """Return the path of a folder that is there or can be made, None for none."""
        value = self.value(name)
        if value is None or value == "":  # as on the command line
            return None
        if isinstance(value, (str, os.PathLike)) and not Path(value).is_file():
            return str(value)
        raise ValueError(
            f"Invalid {name}: {self.shown(name)} is not the path of a folder."
            f' For example: {name} = "evidence".'
        )

    def cls(self, name: str, *, has: Sequence[str], is_not: str = "") -> Any:
        """Return a class with the attributes *has*, and no base in the module *is_not*."""
        try:
            loaded = load_object(self.value(name))
        except (ImportError, NameError, TypeError, ValueError) as error:
            wanted = f"a class or the path of one ({printable(str(error))})"
            if near := _nearest_class(self.value(name), has):
                raise ValueError(
                    f"Invalid {name}: {self.shown(name)} is not {wanted}. Did you mean {near!r}?"
                ) from error
            raise self._wrong(name, wanted) from error
        if not isinstance(loaded, type):
            raise self._wrong(name, "a class or the path of one")
        missing = [attribute for attribute in has if not hasattr(loaded, attribute)]
        if missing:
            raise self._wrong(name, f"a class with {', '.join(missing)}")
        if is_not in (base.__module__ for base in loaded.__mro__):
            raise self._wrong(name, "another class than the one that falls back to it")
        return loaded

    def member(self, name: str, kind: type[_E]) -> _E:
        """Return a member of *kind* by its value."""
        value = self.value(name)
        try:
            return kind(value)
        except ValueError:
            raise self._wrong(name, f"one of {_choices(kind)}") from None

    def members(self, name: str, kind: type[_E]) -> list[_E]:
        """Return a list of members of *kind* by their values."""
        try:
            if self.value(name) == "[]":  # as on the command line
                return []
            return [kind(value) for value in self._settings.getlist(name, self._defaults[name])]
        except (TypeError, ValueError):
            raise self._wrong(name, f"a list of {_choices(kind)}") from None

    def overrides(self, name: str) -> Overrides:
        """Return the overrides of a list of entries, or of its JSON."""
        value = self.value(name)
        try:
            if isinstance(value, str):  # as on the command line
                value = json.loads(value) if value.strip() else []
            return overrides_of(value)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"Invalid {name}: {printable(str(error), _WRONG_CHARS)}. For example: {name} ="
                f" {_OVERRIDES}."
            ) from None

    def labels(self, name: str) -> tuple[str, ...]:
        """Return labels of usage categories, each once."""
        value = self.value(name)
        try:
            given = [] if value == "[]" else self._settings.getlist(name, self._defaults[name])
            labels = dict.fromkeys(each.strip() for each in given)
        except (AttributeError, TypeError):
            labels = {"": None}
        if all(map(_LABEL.fullmatch, labels)):
            return tuple(labels)
        raise ValueError(
            f"Invalid {name}: {self.shown(name)} is not a list of labels in lower case."
            f' For example: {name} = ["train-ai"].'
        )

    def name_or_none(self, name: str) -> str | None:
        """Return the name of a field, None if there is to be none."""
        value = self.value(name)
        if value is None or value == "":  # as on the command line
            return None
        if isinstance(value, str) and value.isidentifier():
            return value
        raise ValueError(
            f"Invalid {name}: {self.shown(name)} is not the name of a field."
            f' For example: {name} = "usage".'
        )

    def keys(self, name: str) -> tuple[str, ...]:
        """Return a list of keys of request.meta."""
        try:
            keys = tuple(self._settings.getlist(name, self._defaults[name]))
        except TypeError:
            keys = (None,)
        if not all(isinstance(key, str) and key for key in keys):
            raise self._wrong(name, "a list of meta keys")
        return keys


def _nearest_class(path: Any, has: Sequence[str]) -> str | None:
    """Return the path of the class with the attributes *has* whose name is most like *path*."""
    module_name, _, name = str(path).rpartition(".")
    try:
        module = import_module(module_name)
    except (ImportError, ValueError):
        return None
    public = getattr(module, "__all__", None) or dir(module)
    fitting = [
        each
        for each in public
        if isinstance(found := getattr(module, each, None), type)
        and all(hasattr(found, attribute) for attribute in has)
    ]
    near = difflib.get_close_matches(name, fitting, 1, cutoff=0.5)
    return f"{module_name}.{near[0]}" if near else None


def _choices(kind: type[Enum]) -> str:
    return ", ".join(repr(member.value) for member in kind)
