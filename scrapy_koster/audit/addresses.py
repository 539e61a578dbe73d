"""Addresses of clients: masked, and compared with the published ranges of robots."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, TypeAlias

from scrapy_koster.audit.access_log import Visit
from scrapy_koster.audit.textlines import decoded
from scrapy_koster.protocol.printable import printable

UNVERIFIED = " (unverified)"
"""Suffix of a robot's name for visits from unpublished addresses. No name token ends with it."""

Shown: TypeAlias = Callable[[Any], str]
"""A function that returns a client as printable text."""

_CLIENTS_KEPT = 20_000
_CHARS = 60
_IPV4_BITS = 24
_IPV6_BITS = 48
_PREFIX_KEYS = ("ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix")


def whole(client: bytes | str) -> str:
    """Return the whole address of a client as printable text."""
    return printable(client, _CHARS)


def masked(client: bytes | str) -> str:
    """Return the network of an address (/24 or, for IPv6, /48), or the end of a host name."""
    try:
        address = _address(client)
    except ValueError:
        text = decoded(client)
        kept = text.rpartition(".")[0].rpartition(".")[2]
        return printable(f"*.{kept}.{text.rpartition('.')[2]}" if kept else "*", _CHARS)
    bits = _IPV4_BITS if isinstance(address, IPv4Address) else _IPV6_BITS
    return str(ip_network(f"{address}/{bits}", strict=False))


def _address(client: bytes | str) -> Any:
    """Return the address of a client, without a port. Raises ValueError for a host name."""
    text = decoded(client)
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    address = ip_address(text)
    return getattr(address, "ipv4_mapped", None) or address


def networks_in(text: str) -> list[Any]:
    """Return the networks in a file of address ranges. Raises ValueError if invalid or empty.

    The file is JSON with a list of ``prefixes``, as published by Google, Bing, Apple and OpenAI, or
    it has one network or address per line. ``#`` begins a comment.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        texts: Iterable[str] = (line.partition("#")[0].strip() for line in text.splitlines())
    else:
        texts = _prefixes(found)
    networks = [ip_network(each, strict=False) for each in texts if each]
    if not networks:
        raise ValueError("there is no address range in it")
    return networks


def _prefixes(found: Any) -> Iterator[str]:
    entries = found.get("prefixes", ()) if isinstance(found, dict) else found
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            yield from (entry[key] for key in _PREFIX_KEYS if isinstance(entry.get(key), str))


class Ranges:
    """The published address ranges of some robots."""

    def __init__(self, networks: Mapping[str, list[Any]]) -> None:
        """*networks* has the networks of a robot by its name token in lower case."""
        self._networks = networks
        self._is_inside = lru_cache(_CLIENTS_KEPT)(self._inside)

    def ranges_of(self, name: str) -> list[Any] | None:
        """Return the ranges of *name* or of a prefix (googlebot for googlebot-image), or None."""
        parts = name.split("-")
        starts = ("-".join(parts[:n]) for n in range(len(parts), 0, -1))
        return next((self._networks[start] for start in starts if start in self._networks), None)

    def _inside(self, name: str, client: bytes | str) -> bool | None:
        """Return whether a client has a published address of the robot, or None without ranges.

        Returns False for a host name, which is not resolved.
        """
        if (networks := self.ranges_of(name)) is None:
            return None
        try:
            address = _address(client)
        except ValueError:
            return False
        return any(address in network for network in networks)

    def marked(self, visits: Iterable[Visit]) -> list[Visit]:
        """Return *visits*. A name gets UNVERIFIED if the address is outside of the known ranges."""
        return [
            (visit[0], visit[1] + UNVERIFIED, *visit[2:])
            if self._is_inside(visit[1], visit[2]) is False
            else visit
            for visit in visits
        ]
