"""3.2.2: the spellings in which a URL may reach its site.

A rule is compared with the path of the URL "as it is sent", and every download
handler changes some URLs. Observed changes:

=========================  =======================================================
Scrapy's HTTP/1.1          drops an empty ``;`` and an empty ``?``; doubles the
                           slashes of a path that begins with two (Python 3.12.4 on)
Scrapy's HTTP/2            drops the parameters of the last segment, ``;x``
aiohttp                    resolves segments of dots, decodes %2F in the query
httpx                      resolves segments of dots
any, with verbatim_url     drops tabs, line ends, and space at both ends
=========================  =======================================================

So a URL is allowed only if all these spellings are allowed. The handler in use does not
matter: handlers change between versions of a library, and many servers resolve dots if
the handler does not.
"""

import re
from collections.abc import Iterator, Sequence

_ENCODED_DOT = re.compile("%2e", re.IGNORECASE)
_ENCODED_SLASH = re.compile("%2f", re.IGNORECASE)
_SPACE_AND_CONTROLS = "".join(map(chr, range(0x21)))
_WITHOUT_LINE_ENDS = str.maketrans("", "", "\t\n\r")
_SCHEME_CHARS = len("https://")


def is_plain(url: str) -> bool:
    """Return whether *url* has no part that a handler may change. Most URLs are plain."""
    path = url[max(0, url.find("/", _SCHEME_CHARS)) :]  # the whole URL if it has no path
    return not (
        ";" in path
        or "#" in path
        or "%2" in path
        or "/." in path
        or "//" in path
        or path.endswith("?")
        or " " in url
        or not url.isprintable()
    )


def sent_as(url: str) -> Sequence[str]:
    """Return *url*, and the other spellings in which a handler may send the URL.

    Spellings that differ only in escapes are left out, because escapes are decoded before the
    comparison (C3). The exception is %2F in a query.
    """
    return (url,) if is_plain(url) else (url, *_spellings(url))


def _spellings(url: str) -> Iterator[str]:
    sent = url.lstrip(_SPACE_AND_CONTROLS).translate(_WITHOUT_LINE_ENDS).partition("#")[0]
    for stripped in dict.fromkeys([sent, sent.rstrip(" ")]):
        for spelling in _rewritten(stripped):
            yield spelling
            if spelling.endswith(" "):
                yield spelling.rstrip(" ")


def _rewritten(url: str) -> Iterator[str]:
    head, mark, query = url.partition("?")
    start = head.find("/", head.find("//") + 2)
    origin, path = (head, "/") if start < 0 else (head[:start], head[start:])
    queries = [mark + query, mark + _ENCODED_SLASH.sub("/", query)] if query else [mark, ""]
    dotted = _ENCODED_DOT.sub(".", path)
    paths = [*_without_params(path), *_without_dots(path), *_without_dots(dotted)]
    for spelt in dict.fromkeys(paths):
        for behind in dict.fromkeys(queries):
            yield origin + spelt + behind


def _without_params(path: str) -> list[str]:
    parent, _, name = path.rpartition("/")
    paths = [path, f"{parent}/{name.partition(';')[0]}"]
    return paths + [f"//{each}" for each in paths if each.startswith("//")]


def _without_dots(path: str) -> Iterator[str]:
    """Yield *path* without dot segments (RFC 3986, 5.2.4).

    If the last segment is removed, yield the path without and with a slash at the end.
    """
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    yield "/" + "/".join(kept)
    if segments and segments[-1] in (".", ".."):
        yield "/" + "/".join([*kept, ""])
