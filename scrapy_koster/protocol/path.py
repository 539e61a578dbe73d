"""3.2.2: the path portion of a URL, and how it is compared."""

from __future__ import annotations

# C3: "unencoded prior to comparison, unless it is the "/" character": an
# encoded slash becomes a unit of its own, outside of the 256 octets.
_ENCODED_SLASH = "\u0100"
_HEX = "0123456789ABCDEFabcdef"
_ESCAPES = {high + low: chr(int(high + low, 16)) for high in _HEX for low in _HEX}
_ESCAPES["2F"] = _ESCAPES["2f"] = _ENCODED_SLASH


def url_path(url: str | bytes) -> str:
    """Return the path portion of an absolute *url* (3.2.2), to compare with.

    C4: path, parameters and query as they were sent, without the fragment; an
    empty path is "/". The escapes are decoded (C3).
    """
    return origin_and_path(url)[1]


def is_robots_txt(url: str | bytes) -> bool:
    """Whether *url* is "the /robots.txt URL", always allowed (3.2.2)."""
    return url_path(url) == "/robots.txt"


def origin_and_path(url: str | bytes) -> tuple[str, str]:
    """Return what is before the path portion of *url*, as it is, and the path portion."""
    if isinstance(url, bytes):
        url = url.decode("latin-1")
    elif not url.isascii():  # B4: a URL's text is UTF-8
        url = url.encode("utf-8", "surrogatepass").decode("latin-1")
    url = url.partition("#")[0]
    start = url.find("/")
    if url.startswith("//", start):
        start = url.find("/", start + 2)
    origin = (url if start < 0 else url[:start]).partition("?")[0]
    path = url[len(origin) :]
    if path[:1] != "/":
        path = "/" + path
    return origin, unescape(path) if "%" in path else path


def unescape(path: str) -> str:
    """Decode each escape once (3.2.2): C3, a malformed one stands for itself."""
    head, *parts = path.split("%")
    decoded = [head]
    for part in parts:
        octet = _ESCAPES.get(part[:2])
        decoded.append("%" + part if octet is None else octet + part[2:])
    return "".join(decoded)
