"""Decodes a robots.txt by its Content-Encoding, with the libraries that decode Scrapy's pages."""

import re
import sys
from importlib import import_module

from scrapy_koster.protocol.printable import printable

# Words in a Content-Encoding that name no coding: "identity", and words that sites send by mistake,
# such as charsets and media types.
_NO_CODING = re.compile(
    r"|\*|identity|none|no|off|false|null|undefined|plain|raw|binary|[78]-?bit|(?:aws-)?chunked"
    r"|(?:text|application)(?:/.*)?"
    r"|(?:charset=|x-)?(?:utf|unicode|ascii|us-ascii|ansi|iso|latin|windows|cp|koi8|gb|big5|s?jis|shift"
    r"|euc)[0-9a-z_-]*"
)
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
# The modules that unpack each coding, as in Scrapy. Scrapy 2.18 and later install all of them.
_CODINGS = {"gzip": "zlib", "x-gzip": "zlib", "deflate": "zlib", "br": "brotli", "zstd": _ZSTD}


def decoded(body: bytes, content_encoding: str, limit: int) -> bytes:
    """Return *body* decoded. An empty *body* is returned unchanged.

    Raises ValueError with the reason if a coding is unknown, if there are more than three,
    if *body* is cut or broken, or if the result has more than *limit* bytes.
    """
    words = (word.strip().lower() for word in content_encoding.split(","))
    codings = [word for word in words if body and not _NO_CODING.fullmatch(word)]
    if not _CODINGS.keys() >= set(codings) or len(codings) > 3:
        raise ValueError(f"its Content-Encoding is not decoded: {printable(', '.join(codings))}")
    for coding in reversed(codings):
        if len(body := unpacked(body, coding, limit)) > limit:
            raise ValueError(f"it unpacks to more than {limit} bytes")
    return body


def unpacked(body: bytes, coding: str, limit: int) -> bytes:
    """Return *body* unpacked by *coding*, at most to some bytes more than *limit*.

    If more than *limit* bytes are returned, the rest of *body* is not examined. Raises ValueError
    with the reason if *body* is cut or broken. Zeros after the stream are padding. Other bytes
    there, such as a second gzip member, are an error.

    These are the libraries of Scrapy's HttpCompressionMiddleware. That middleware accepts a body
    that was cut, and decodes the received part. The missing rules would not be obeyed.
    """
    try:
        module = import_module(_CODINGS[coding])
        if coding == "br":
            stream = module.Decompressor()
            found: bytes = stream.process(body, output_buffer_limit=limit + 1)
            is_whole = stream.is_finished()
        else:
            # Some servers send a deflate stream without the zlib header.
            bits = -15 if coding == "deflate" and body[0] & 15 != 8 else 47
            stream = module.ZstdDecompressor() if coding == "zstd" else module.decompressobj(bits)
            found = stream.decompress(body, limit + 1)
            is_whole = stream.eof and not stream.unused_data.strip(b"\0")
    except (ImportError, TypeError):  # TypeError: an older brotli, which cannot limit its output
        raise ValueError(f"its Content-Encoding needs the package {_CODINGS[coding]}") from None
    except Exception:  # noqa: BLE001  # each library raises its own error for a broken body
        found, is_whole = b"", False
    if not is_whole and len(found) <= limit:
        raise ValueError(f"its body is not whole: {coding}")
    return found
