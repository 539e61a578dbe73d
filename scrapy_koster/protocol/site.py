"""3.1: a site is the scheme, host and port of one /robots.txt."""

from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from scrapy_koster.protocol.printable import printable

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Site:
    """The scheme, host and port of a site (3.1).

    ``host`` is in lower case, in ASCII if possible (IDNA), an IPv6 address in brackets. ``port`` is
    given even if it is the default. User information is not part of a site.
    """

    scheme: str
    host: str
    port: int

    @property
    def robots_url(self) -> str:
        """The URL of the site's robots.txt (3.1)."""
        return f"{self}/robots.txt"

    def is_named_by(self, host: str) -> bool:
        """Whether *host*, the value of a Host header (RFC 9110, 7.2), names this site."""
        with suppress(ValueError):
            return site_of(f"{self.scheme}://{host}/") == self
        return False

    def __str__(self) -> str:
        """The site's origin, without the default port of the scheme."""
        port = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


def site_of(url: str) -> Site | None:
    """Return the site of *url*, or None if the scheme is neither http nor https.

    Raises ValueError for an http or https URL without a host or with an invalid port, and
    for a URL that urlsplit() rejects.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme not in _DEFAULT_PORTS:
            return None
        host, port = parts.hostname, parts.port
    except ValueError as error:
        said = printable(str(error))
        raise ValueError(f"no site in the URL '{printable(url)}': {said}") from None
    if not host:
        raise ValueError(f"no site in the URL '{printable(url)}': it has no host")
    host = f"[{host}]" if ":" in host else host
    with suppress(UnicodeError):  # Request keeps a host that has no form in ASCII, too
        host = host if host.isascii() else host.encode("idna").decode()
    return Site(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)
