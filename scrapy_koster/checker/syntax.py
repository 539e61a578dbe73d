"""The syntax checker: returns the mistakes in a robots.txt (3.2, 3.3).

The findings are for the author of the file: lines with another effect than the author probably
expects, and lines with different meanings in the draft and RFC 9309. The checker uses the parsers
of a crawl, so the findings agree with the decisions of a crawl.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from scrapy_koster.checker.checks import BOTH, CHECKS, Check
from scrapy_koster.checker.hazard import HAZARDS, Hazards
from scrapy_koster.checker.record import seen_between, seen_in_names, seen_in_order, seen_outside
from scrapy_koster.checker.seen import AGENT, RULES, SPACE, Seen, seen_in_line, taken_apart
from scrapy_koster.checker.usage import seen_in_usage
from scrapy_koster.protocol.html_page import is_html
from scrapy_koster.protocol.line import is_wide, lines, whole_lines
from scrapy_koster.protocol.misspelling import unhidden
from scrapy_koster.protocol.reading import Rfc9309, RobotsTxt
from scrapy_koster.protocol.records import parse
from scrapy_koster.protocol.ruling import Standard
from scrapy_koster.protocol.wording import shown

FINDINGS_LISTED = 20
"""Default number of listed findings with the same code."""

MAX_BYTES = 512_000
"""The default of KOSTER_MAX_BYTES, the limit for reading a file (section 6)."""

_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding at one place of a file."""

    line: int
    """1-based."""
    column: int
    """1-based, in bytes without a byte order mark."""
    check: Check
    message: str
    """One printable line."""
    readings: Collection[Standard] = BOTH
    """The standards to which the finding applies in this file."""
    more: int = 0
    """Number of unlisted findings with this code; 0 except in the code's last listed finding."""


def check(
    body: bytes,
    limit: int | None = FINDINGS_LISTED,
    *,
    max_bytes: int = MAX_BYTES,
    content_type: str | None = None,
    readings: Collection[Standard] = BOTH,
) -> list[Finding]:
    """Return the findings of a file, in the order of its lines. Never raises.

    At most *limit* findings with the same code are listed, or all findings if *limit* is None. As
    in a crawl, whole lines up to *max_bytes* are read. *content_type* is the Content-Type of the
    response, "" if the response has no Content-Type, and None if there was no response. Findings
    about standards outside of *readings* are omitted.
    """
    found: dict[str, list[Seen]] = {}
    for seen in (*_seen_in_type(content_type), *_seen(body, max_bytes)):
        if set(readings) & set(seen.readings or CHECKS[seen.code].readings):
            found.setdefault(seen.code, []).append(seen)
    hazards = Hazards(whole_lines(body, max_bytes)) if found.keys() & HAZARDS else None
    findings = [
        _finding(
            seen,
            len(same) - number if number == limit else 0,
            hazards if code in HAZARDS and number <= FINDINGS_LISTED else None,
        )
        for code, same in found.items()
        for number, seen in enumerate(same[:limit], 1)
    ]
    return sorted(findings, key=lambda f: (f.line, f.column, f.check.code))


def _finding(seen: Seen, more: int, hazards: Hazards | None) -> Finding:
    said = seen.said.format(*map(_text, seen.texts))
    if hazards is not None and (decides := hazards.line_of(seen)):
        number, path = decides
        said += f"; RFC 9309 uses line {number} for {_text(path)}"
    kind = CHECKS[seen.code]
    return Finding(seen.line, seen.column, kind, said, seen.readings or kind.readings, more)


def _text(text: bytes | int) -> str:
    return str(text) if isinstance(text, int) else f"'{shown(text, _SHOWN)}'"


def _seen_in_type(content_type: str | None) -> Iterator[Seen]:
    """Yield a finding if the Content-Type is not text/plain.

    3.1: "a resource of Internet Media Type [3] "text/plain"".
    """
    if content_type is None or content_type.partition(";")[0].strip().lower() == "text/plain":
        return
    if content_type:
        said = "the Content-Type is {}"
        yield Seen("K007", 1, 1, said, (content_type.encode(errors="backslashreplace"),))
    else:
        yield Seen("K007", 1, 1, "the answer has no Content-Type")


def _seen(body: bytes, max_bytes: int) -> Iterator[Seen]:
    """Yield the findings of a file. Findings with the same code are in the order of the lines."""
    read = whole_lines(body, max_bytes)
    numbered = list(enumerate(lines(read), 1))
    sources = [taken_apart(number, text) for number, text in numbered if text.strip(SPACE)]
    hidden = list(_seen_hidden(read))
    is_read = bool(hidden) or any(source.field in (AGENT, *RULES) for source in sources)
    whole = list(_seen_of_whole(body, read, is_read=is_read))
    yield from whole
    if whole and not is_read:
        return
    if body.startswith(b"\xef\xbb\xbf"):
        yield Seen("K004", 1, 1, "the file begins with a byte order mark")
    if len(read) < len(body):
        said = "the {} bytes from here on are not read: a crawl reads {} (KOSTER_MAX_BYTES)"
        yield Seen("K005", len(numbered), 1, said, (len(body) - len(read), max_bytes))
    elif not any(source.text[: source.said_end].strip(SPACE) for source in sources):
        yield Seen("K001", 1, 1, "the file has no instruction: no robot is restricted")
    yield from hidden
    for source in sources:
        yield from seen_in_line(source)
        yield from seen_in_usage(source)
    records = parse(read)
    blanks = [number for number, text in numbered if not text.strip(SPACE)]
    yield from seen_outside(sources, records)
    yield from seen_between(records, blanks)
    yield from seen_in_names(records)
    yield from seen_in_order(records)
    yield from _seen_closed(read)


def _seen_hidden(read: bytes) -> Iterator[Seen]:
    """Yield the findings about lines that markup hides."""
    if (meant := unhidden(read)) is None:
        return
    for number, (text, rules) in enumerate(zip(lines(read), meant.split(b"\n"), strict=True), 1):
        if text != rules and (b"<" in text or b">" in text):
            said = "hidden by markup: {}"
            yield Seen("K019", number, 1, said, (rules.replace(b"\r", b", "),))


def _seen_closed(read: bytes) -> Iterator[Seen]:
    """Yield the findings about lines that close the whole site to robots that have no record."""
    closing: dict[int, list[Standard]] = {}
    for reading in (RobotsTxt(read), Rfc9309(read)):
        ruling = reading.ruling(b"http://h/", "")
        if ruling.rule is None or ruling.allowed or ruling.rule.value not in _WHOLE_SITE:
            continue
        lines_of = reading.lines("", b"allow")
        if not any(line.value for line in lines_of):
            closing.setdefault(ruling.rule.number, []).append(reading.standard)
    for number, standards in closing.items():
        said = "the whole site is forbidden for robots that the file does not name"
        yield Seen("K008", number, 1, said, (), tuple(standards))


_WHOLE_SITE = (b"/", b"/*", b"*")


def _seen_of_whole(body: bytes, read: bytes, *, is_read: bool) -> Iterator[Seen]:
    """Yield the findings about the whole file.

    *is_read* is True if the file has a User-agent line, a rule or a hidden line.
    """
    is_page = is_html(read)
    if is_page:
        said = "there is HTML in this file" if is_read else "this is an HTML page"
        yield Seen("K002", 1, 1, said)
    if is_read and is_wide(body):
        yield Seen("K003", 1, 1, "this is UTF-16 or UTF-32: many readers can read no line")
    elif not is_read and not is_page and _seems_wide(body):
        yield Seen("K003", 1, 1, "this is UTF-16 or UTF-32: no line can be read")


_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")


def _seems_wide(body: bytes) -> bool:
    """Return whether a file seems to be UTF-16 or UTF-32: a byte order mark, or many zero bytes."""
    start = body[:1000]
    return start.startswith(_WIDE_MARKS) or 3 * start.count(0) > len(start)
