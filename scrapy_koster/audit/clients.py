"""The addresses of clients, masked: a log is about people too."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address, ip_address, ip_network
from typing import Any, TypeAlias

from scrapy_koster.protocol.printable import printable

_CHARS = 60
_IPV4_BITS = 24
_IPV6_BITS = 48

Shown: TypeAlias = Callable[[Any], str]
"""What returns the text by which a client is shown, safe to print."""


def whole(client: bytes | str) -> str:
    """Return all of an address."""
    return printable(client, _CHARS)


def masked(client: bytes | str) -> str:
    """Return the network of an address, 192.0.2.0/24 or 2001:db8::/48; of a name its end."""
    text = client.decode("latin-1") if isinstance(client, bytes) else client
    try:
        address = ip_address(text.strip("[]"))
    except ValueError:
        kept = text.rpartition(".")[0].rpartition(".")[2]
        return printable(f"*.{kept}.{text.rpartition('.')[2]}" if kept else "*", _CHARS)
    bits = _IPV4_BITS if isinstance(address, IPv4Address) else _IPV6_BITS
    return str(ip_network(f"{address}/{bits}", strict=False))
