"""3.2.2: the path portion of a URL, and how the two standards compare paths."""

_HEX = "0123456789ABCDEFabcdef"
_OCTETS = {high + low: chr(int(high + low, 16)) for high in _HEX for low in _HEX}

# C3: "unencoded prior to comparison, unless it is the "/" character": an
# encoded slash becomes a character of its own, outside of the 256 octets.
_ENCODED_SLASH = "\u0100"
_OF_THE_DRAFT = {**_OCTETS, "2F": _ENCODED_SLASH, "2f": _ENCODED_SLASH}

# RFC 9309, 2.2.2: a reserved octet is "percent-encoded as defined by RFC 3986" and so
# equals its escape. The exceptions are "/", and the "?" at which the query begins.
_ENCODED_QUESTION = "\u0101"
_OF_RFC_9309 = {**_OF_THE_DRAFT, "3F": _ENCODED_QUESTION, "3f": _ENCODED_QUESTION}
_AS_DATA = str.maketrans({_ENCODED_SLASH: "/", _ENCODED_QUESTION: "?"})


def url_path(url: str | bytes) -> str:
    """Return the path portion of an absolute *url*, for the comparison with rules (3.2.2).

    C4: path, parameters and query of the sent URL, without the fragment. An empty path is "/". The
    escapes are decoded (C3).
    """
    return unescape(origin_and_path(url)[1])


def is_robots_txt(url: str | bytes) -> bool:
    """Whether *url* is "the /robots.txt URL", always allowed (3.2.2)."""
    # For speed: this function is called for every request.
    if isinstance(url, str) and "/robots.txt" not in url and "%" not in url:
        return False
    return url_path(url) == "/robots.txt"


def origin_and_path(url: str | bytes) -> tuple[str, str]:
    """Return the origin and the path portion of *url*, without decoding the escapes."""
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
    return origin, path if path[:1] == "/" else f"/{path}"


def unescape(path: str) -> str:
    """Return *path* with escapes decoded once (3.2.2). C3: a malformed escape is not changed."""
    return _decoded(path, _OF_THE_DRAFT) if "%" in path else path


def unescape_by_rfc9309(path: str) -> str:
    """Return *path* decoded for the comparison by RFC 9309 (2.2.2).

    By an example in 2.2.2, the slashes of a query are data: ``?baz=https://foo.bar`` equals
    ``?baz=https%3A%2F%2Ffoo.bar``.
    """
    if "%" not in path:
        return path
    path, mark, query = path.partition("?")
    return _decoded(path, _OF_RFC_9309) + mark + _decoded(query, _OCTETS)


def in_query(text: str) -> str:
    """Return *text*, a result of ``unescape_by_rfc9309``, with ``%2F`` and ``%3F`` decoded, too.

    Before the query, these escapes differ from "/" and "?". In the query, they do not.
    """
    return text if text.isascii() else text.translate(_AS_DATA)


def _decoded(path: str, escapes: dict[str, str]) -> str:
    head, *parts = path.split("%")
    decoded = [head]
    for part in parts:
        octet = escapes.get(part[:2])
        decoded.append("%" + part if octet is None else octet + part[2:])
    return "".join(decoded)
