"""Findings about a Content-Usage or Content-Signal line."""

import re
from collections.abc import Iterator

from scrapy_koster.checker.seen import Seen, SourceLine
from scrapy_koster.protocol.line import CONTENT_USAGE
from scrapy_koster.protocol.usage import KNOWN_LABELS, SIGNAL_LABELS, VALUE_BYTES, tokens_in
from scrapy_koster.protocol.usage_statements import CONTENT_SIGNAL, split

_WORDS = {CONTENT_USAGE: ("y", "n"), CONTENT_SIGNAL: ("yes", "no", "y", "n")}
_LABELS = {CONTENT_USAGE: KNOWN_LABELS, CONTENT_SIGNAL: {*KNOWN_LABELS, *SIGNAL_LABELS}}
# A word at the start, before a space, that looks like a path without a slash in front.
_PATH_WITHOUT_SLASH = re.compile(rb"[^/*=,; \t][^=,; \t]*[/*][^=,; \t]*[ \t]|\*[^=,; \t]*[ \t]")


def seen_in_usage(source: SourceLine) -> Iterator[Seen]:
    """Yield findings about preferences without the effect that the author probably expects."""
    if source.field not in _WORDS:
        return
    column, value = source.value_column, source.value
    path, statement = split(value) if source.field == CONTENT_USAGE else (b"", value)
    if len(statement) > VALUE_BYTES:
        said = "it is longer than {} bytes, so it disallows all known labels"
        yield source.seen("K070", column, said, VALUE_BYTES)
    elif (tokens := tokens_in(statement)) is not None:
        for label, token in tokens.items():
            if label in _LABELS[source.field] and token not in _WORDS[source.field]:
                said = "{} has another value than {}"
                words = "/".join(_WORDS[source.field][:2]).encode()
                yield source.seen("K071", column, said, label.encode(), words)
    elif not path and _PATH_WITHOUT_SLASH.match(value):
        yield source.seen("K072", column, "no slash before the path: {}", value)
    else:
        yield source.seen("K070", column, "it cannot be parsed: {}", statement)
