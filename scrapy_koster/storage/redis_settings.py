"""The settings of RedisStorage. They are known without redis-py, which is optional."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

from scrapy_koster.storage.setting import Setting, invalid

_PREFIX = re.compile(r"[A-Za-z0-9.:_-]+")
_OPTION = re.compile(r"db|ssl_\w+")
_DATABASE = re.compile(r"/?|/[0-9]{1,9}")


def _url(value: object) -> str:
    """Return a URL for redis-py; an error does not show the value, nor a password in it."""
    wrong = _wrong_in(value) if isinstance(value, str) else "it is not a string"
    if wrong is None:
        return str(value)
    raise ValueError(
        f"it is not the URL of a Redis server: {wrong}. In a user name or a password write"
        " %2F for /, %40 for @, %3A for :, %23 for #, %3F for ? and %25 for %"
    ) from None


def _wrong_in(url: str) -> str | None:
    """Return what is wrong with *url*, in words that show nothing of it; None if nothing is."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  # raises ValueError if it is not a number
    except ValueError:
        return "its host or its port cannot be read"
    options = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if parts.scheme not in {"redis", "rediss", "unix"}:
        return "it does not begin with redis://, rediss:// or unix://"
    if parts.fragment or any(not _OPTION.fullmatch(name) for name in options):
        return "it has options other than db and those that begin with ssl_"
    if parts.scheme == "unix":
        return None if parts.path else "it has no path of a socket"
    if not parts.hostname:
        return "it has no host"
    return None if _DATABASE.fullmatch(parts.path) else "its path is not the number of a database"


def _prefix(value: object) -> str:
    if isinstance(value, str) and _PREFIX.fullmatch(value):
        return value
    raise invalid(value, "made of letters, digits and the characters . : _ - only")


REDIS_SETTINGS: Mapping[str, Setting] = {
    "KOSTER_REDIS_URL": Setting("redis://127.0.0.1:6379/0", _url),
    "KOSTER_REDIS_PREFIX": Setting("koster", _prefix),
    "KOSTER_REDIS_TTL_SECS": Setting.whole(2592000, least=1),
}
