"""Published address ranges: does a client that calls itself a robot come from its addresses?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from scrapy_koster.audit.access_log import Visit
from scrapy_koster.audit.bounded_cache import BoundedCache

UNVERIFIED = " (unverified)"
"""Follows the name of a robot whose requests came from other addresses. No token has a space."""

CLIENTS_KEPT = 20_000
_PREFIX_KEYS = ("ipv4Prefix", "ipv6Prefix", "ip_prefix", "ipv6_prefix")


def networks_in(text: str) -> list[Any]:
    """Return the networks of a file of address ranges. Raises ValueError if it has none.

    Either JSON with a list of ``prefixes``, as Google, Bing, Apple and OpenAI publish it, or a
    network or an address a line, where ``#`` begins a comment.
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


class _Networks:
    """The address ranges of one robot."""

    def __init__(self, networks: Iterable[Any]) -> None:
        self._starts = {(n.version, n.prefixlen, int(n.network_address)) for n in networks}
        self._lengths = {(version, length) for version, length, _ in self._starts}

    def has(self, client: bytes | str) -> bool:
        """Return whether *client* has an address of them. A host name is not resolved."""
        text = client if isinstance(client, str) else client.decode("latin-1")
        try:
            address = ip_address(text.strip("[]"))
        except ValueError:
            return False
        address = getattr(address, "ipv4_mapped", None) or address
        return any(
            (version, length, int(address) & ~((1 << (address.max_prefixlen - length)) - 1))
            in self._starts
            for version, length in self._lengths
            if version == address.version
        )


class Ranges:
    """The published address ranges of some robots."""

    def __init__(self, networks: Mapping[str, list[Any]]) -> None:
        """*networks* are by the name tokens of the robots, in lower case."""
        self._inside = {
            name: BoundedCache["bytes | str", bool](_Networks(each).has, CLIENTS_KEPT)
            for name, each in networks.items()
        }
        self._of: BoundedCache[str, Any] = BoundedCache(self._for, CLIENTS_KEPT)

    def has(self, name: str) -> bool:
        """Return whether the ranges of the robot *name* are known."""
        return self._for(name) is not None

    def _for(self, name: str) -> BoundedCache[bytes | str, bool] | None:
        """Return the ranges of *name*: googlebot.json is for googlebot-image as well."""
        parts = name.split("-")
        starts = ("-".join(parts[:n]) for n in range(len(parts), 0, -1))
        return next((self._inside[start] for start in starts if start in self._inside), None)

    def marked(self, visits: Iterable[Visit]) -> list[Visit]:
        """Return *visits*, with those from other addresses as visits of an unverified robot."""
        found: list[Visit] = []
        for visit in visits:
            inside = self._of[visit[1]]
            is_other = inside is not None and not inside[visit[2]]
            found.append((visit[0], visit[1] + UNVERIFIED, *visit[2:]) if is_other else visit)
        return found
