"""The settings of a storage, which it declares in ``SETTINGS``."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scrapy_koster.protocol.printable import printable


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a storage declares: ``SETTINGS = {"MY_TIMEOUT_SECS": Setting(2.0, float)}``.

    Begin its name with a prefix of your own.
    """

    default: Any
    """The value if the setting is missing or None; ``read`` reads it, too."""
    read: Callable[[Any], Any]
    """Returns the value to use. Raises ValueError or TypeError for an invalid one, which stops the
    crawl when it starts; the message ends up in the log."""
    in_data_dir: bool = False
    """Whether the value is a path. A relative one is below Scrapy's data directory."""

    @classmethod
    def path(cls, default: str) -> Setting:
        """Return the setting of a path; a relative one is below Scrapy's data directory."""
        return cls(default, _path, in_data_dir=True)

    @classmethod
    def whole(cls, default: int, *, least: int) -> Setting:
        """Return the setting of a whole number, *least* or more."""
        return cls(default, lambda value: _whole(value, least))


def invalid(value: object, wanted: str) -> ValueError:
    """Return the error for a *value* that is not what is *wanted*, such as "a path"."""
    return ValueError(f"{printable(repr(value))} is not {wanted}")


def _path(value: object) -> str:
    if isinstance(value, (str, os.PathLike)) and (path := str(value)):
        return path
    raise invalid(value, "a path")


def _whole(value: Any, least: int) -> int:
    try:
        number = None if isinstance(value, (bool, float)) else int(value)
    except (TypeError, ValueError):
        number = None
    if number is None or number < least:
        raise invalid(value, f"a whole number, {least} or more")
    return number
