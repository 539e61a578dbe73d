"""The requests and responses of a /robots.txt, and the digest of a body."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

from scrapy_koster.protocol.printable import printable

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def digest_of(body: bytes) -> str:
    """Return the label of a body: "sha256:" and its SHA-256 in lower-case hexadecimal digits.

    The field WARC-Payload-Digest of an archived record has the same value.
    """
    return f"sha256:{sha256(body).hexdigest()}"


def is_digest(text: str) -> bool:
    """Return whether *text* is a label of ``digest_of``."""
    return _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request for a /robots.txt, and the response."""

    url: str
    began: float
    """When the request was sent, in seconds since the epoch."""
    sent: tuple[tuple[bytes, bytes], ...]
    """The header of the request, as pairs."""
    status: int
    received: tuple[tuple[bytes, bytes], ...]
    """The header of the response, as pairs."""
    body: bytes
    """The received bytes, before the Content-Encoding is decoded."""
    is_cut: bool
    """Whether the connection was ended before the body was whole, at KOSTER_MAX_BYTES."""
    protocol: str | None
    """Such as "HTTP/1.1", if the download handler reports the version."""
    address: str | None
    """The IP address that answered, if the download handler reports the address."""
    digest: str

    def __repr__(self) -> str:
        """Return a short and printable text for logs (section 6)."""
        return f"<{self.status} {printable(self.url)}, {len(self.body)} octets>"
