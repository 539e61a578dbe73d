"""The settings of RedisStorage. This module does not need redis-py, which is optional."""

import re
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import SplitResult, parse_qsl, urlsplit

from scrapy_koster.storage.port import Setting, invalid

_PREFIX = re.compile(r"[A-Za-z0-9.:_-]+")
_OPTION = re.compile(r"db|ssl_\w+")
_DATABASE = re.compile(r"/?|/[0-9]{1,9}")


def _url(value: object) -> str:
    """Return *value*, a URL for redis-py. Raises ValueError for an invalid URL.

    The message does not show *value*, which may have a password.
    """
    with suppress(ValueError):  # from urlsplit, for an invalid host or port
        if isinstance(value, str) and _is_of_redis(urlsplit(value)):
            return value
    raise ValueError(
        "it is not the URL of a Redis server: redis:// or rediss:// and a host, or unix:// and the"
        " path of a socket, with no options but db and those that begin with ssl_. In a user name"
        " or a password write %2F for /, %40 for @, %3A for :, %23 for #, %3F for ? and %25 for %"
    )


def _is_of_redis(url: SplitResult) -> bool:
    options = {name for name, _ in parse_qsl(url.query, keep_blank_values=True)}
    if url.fragment or not all(map(_OPTION.fullmatch, options)):
        return False
    if url.scheme == "unix":
        return bool(url.path)
    is_server = url.scheme in {"redis", "rediss"} and url.hostname and url.port != 0
    return bool(is_server and _DATABASE.fullmatch(url.path))


def _prefix(value: object) -> str:
    if isinstance(value, str) and _PREFIX.fullmatch(value):
        return value
    raise invalid(value, "made of letters, digits and the characters . : _ - only")


REDIS_SETTINGS: Mapping[str, Setting] = {
    "KOSTER_REDIS_URL": Setting("redis://127.0.0.1:6379/0", _url),
    "KOSTER_REDIS_PREFIX": Setting("koster", _prefix),
    "KOSTER_REDIS_TTL_SECS": Setting.whole(2592000, least=1),
}
