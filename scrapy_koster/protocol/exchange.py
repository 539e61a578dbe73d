"""The requests and responses of a /robots.txt, and the digest of a body."""

import re
from dataclasses import dataclass
from hashlib import sha256

from scrapy_koster.protocol.printable import printable

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def digest_of(body: bytes) -> str:
    """Return the digest of a body: "sha256:" and the SHA-256 in lower-case hexadecimal digits.

    The field WARC-Payload-Digest of an archived record has the same value.
    """
    return f"sha256:{sha256(body).hexdigest()}"


def is_digest(text: str) -> bool:
    """Return whether *text* has the form of a digest of ``digest_of``."""
    return _DIGEST.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request for a /robots.txt, and the response."""

    url: str
    began: float
    """When the request was sent, in seconds since the epoch."""
    sent: tuple[tuple[bytes, bytes], ...]
    """The header fields of the request, as pairs of name and value."""
    status: int
    received: tuple[tuple[bytes, bytes], ...]
    """The header fields of the response, as pairs of name and value."""
    body: bytes
    """The received bytes, before the Content-Encoding is decoded."""
    is_cut: bool
    """Whether the download was stopped, for example because the body exceeds KOSTER_MAX_BYTES."""
    protocol: str | None
    """The version, such as "HTTP/1.1", or None if the download handler does not report it."""
    address: str | None
    """The IP address of the server. None through a proxy, or if the handler does not report it."""
    digest: str

    def __repr__(self) -> str:
        """Return a short and printable text for logs (section 6)."""
        return f"<{self.status} {printable(self.url)}, {len(self.body)} bytes>"
