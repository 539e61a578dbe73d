"""A folder of WARC files, read back: what was known of a site, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from scrapy_koster.archive.evidence import OUTCOME_TYPE
from scrapy_koster.archive.index import index_of, lines_about, mapped, warc_files
from scrapy_koster.archive.record import Record, record_at
from scrapy_koster.protocol.access import Copy, Failure, Known, last_copy
from scrapy_koster.protocol.line import whole_lines
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import known_from
from scrapy_koster.storage.latest import learnt

_BODIES = ("response", "resource", "conversion")


class ArchiveError(Exception):
    """The archive cannot be read, or lacks a record. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a crawl made of an answer, or of a copy that it found, at a time."""

    site: Site
    at: float
    """When, in seconds since the epoch."""
    source: str
    known: Known
    """Without the body of its copy; ``Folder.whole`` adds it."""
    body_bytes: int
    warc: Path
    """The file that it is in."""


class Folder:
    """The WARC files in a folder, those of all crawls and workers together."""

    def __init__(self, path: str) -> None:
        """Raises ArchiveError if there is no such folder, or no archive in it."""
        self._path = Path(path)
        try:
            self._warcs = warc_files(self._path)
        except OSError as error:
            raise ArchiveError(f"{path!r} cannot be read: {error.strerror}") from None
        if not self._warcs:
            raise ArchiveError(
                f"there is no archive in {path!r}. A crawl writes one into the folder that"
                " KOSTER_ARCHIVE names"
            )

    def outcomes(self, site: Site) -> list[Outcome]:
        """Return what was known of *site*, in order of time. Raises ArchiveError."""
        found = [
            outcome
            for warc in self._warcs
            for record in self._about(warc, site.robots_url, ("metadata",))
            if (outcome := _outcome(record, site, warc)) is not None
        ]
        return sorted(found, key=lambda outcome: (outcome.at, learnt(outcome.known)))

    def whole(self, outcome: Outcome) -> Known:
        """Return what was known, with the body of its copy. Raises ArchiveError if that is lost."""
        known, copy = outcome.known, last_copy(outcome.known)
        if copy is None or not outcome.body_bytes:
            return known
        copy = replace(copy, body=self._body(copy, outcome))
        return replace(known, stale=copy) if isinstance(known, Failure) else copy

    def info(self, warc: Path) -> Mapping[str, str]:
        """Return the fields of the warcinfo record of a file: the settings of its crawl."""
        with _errors_told(warc), mapped(warc) as data:
            try:
                record, _ = record_at(data, 0)
            except ValueError:
                return {}
        lines = record.block.decode("utf-8", "replace").split("\r\n")
        named = (line.partition(":") for line in lines if ":" in line)
        return {name.strip(): value.strip() for name, _, value in named}

    def _body(self, copy: Copy, outcome: Outcome) -> bytes:
        for warc in sorted(self._warcs, key=lambda each: each != outcome.warc):
            for record in self._about(warc, copy.url, _BODIES, record_id=copy.record_id):
                body = record.payload
                if copy.cut_bytes is not None:
                    body = whole_lines(body, copy.cut_bytes)
                if len(body) == outcome.body_bytes:
                    return body
        raise ArchiveError(
            f"the record {copy.record_id} of {copy.url} is not in {str(self._path)!r}. If several"
            " workers have written archives, put their files into one folder"
        )

    def _about(
        self, warc: Path, url: str, kinds: tuple[str, ...], record_id: str | None = None
    ) -> Iterator[Record]:
        with _errors_told(warc), index_of(warc) as index, mapped(warc) as data:
            for line in lines_about(index, url):
                if line.get("type") not in kinds or line.get("record") != (
                    record_id or line.get("record")
                ):
                    continue
                try:
                    record, _ = record_at(data, max(line["offset"], 0))
                except ValueError:
                    continue
                if record.url == url and record.kind in kinds:
                    yield record


@contextmanager
def _errors_told(warc: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"{str(warc)!r} cannot be read: {error.strerror}") from None


def _outcome(record: Record, site: Site, warc: Path) -> Outcome | None:
    """Return the outcome in *record*, None if it is not a valid one of *site*."""
    if record.content_type != OUTCOME_TYPE:
        return None
    try:
        told = json.loads(record.block)
        if told["site"] != str(site):
            return None
        copy, failure = told.get("copy"), told.get("failure")
        size, no_such_host = 0, False
        if copy is not None:
            size = int(copy.pop("bytes"))
            copy["body"] = b""
        if failure is not None:
            no_such_host = bool(failure.pop("no_such_host"))
        known = known_from(copy, failure)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    if isinstance(known, Failure):
        known = replace(known, no_such_host=no_such_host)
    return Outcome(site, record.date, str(told.get("source")), known, size, warc)
