"""Networks that are not public. A site may not redirect a crawler into such a network."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from socket import inet_aton

_NAT64 = IPv6Network("64:ff9b::/96")


def network_of(host: str) -> str:
    """Return "loopback", "link-local", "private" or "", the network of an address.

    The result for a name is "", except for localhost. Addresses can be written in the ways that the
    system reads: with fewer numbers, octal, or hexadecimal.
    """
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return "loopback"
    address = _address(host)
    if address is None:
        return ""
    if address.is_loopback or address.is_unspecified:  # the crawler's own machine
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "" if address.is_global and not address.is_multicast else "private"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address in *host*, as IPv4 if an IPv6 address contains one; None for a name."""
    try:
        address = ip_address(host)
    except ValueError:
        try:
            return IPv4Address(inet_aton(host))
        except (OSError, ValueError):
            return None
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped or address.sixtofour or address
