"""Which addresses are not public: a site may not send a crawler to them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from socket import inet_aton

_NAT64 = IPv6Network("64:ff9b::/96")


def network_of(host: str) -> str:
    """Return "loopback", "link-local" or "private" for an address of such a network, otherwise "".

    A name has no network, except localhost. An address may be spelled as the system reads it: in
    fewer numbers, octal, or hexadecimal.
    """
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return "loopback"
    address = _address(host)
    if address is None:
        return ""
    if address.is_loopback or address.is_unspecified:  # both lead to the own machine
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "" if address.is_global and not address.is_multicast else "private"


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that *host* is, the one inside it if that is of IPv4; None for a name."""
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
