"""Reads the results about a site from a folder of WARC files."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from scrapy_koster.archive.index import WARC_SUFFIX, fields_about, index_of
from scrapy_koster.archive.record import ArchiveError, Outcome, Record, outcome_url
from scrapy_koster.archive.warc import records_in
from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure, last_copy
from scrapy_koster.protocol.site import Site
from scrapy_koster.storage.encoding import known_from
from scrapy_koster.storage.latest import recorded_at


class Folder:
    """The WARC files of crawls and workers in a folder."""

    def __init__(self, path: str) -> None:
        """Raises ArchiveError if the folder does not exist, or has no archive."""
        self._path = Path(path)
        with _archive_errors(self._path):
            self._warcs = sorted(self._path.glob(f"*{WARC_SUFFIX}"))
        if not self._warcs:
            raise ArchiveError(f"no archive in {path!r}. A crawl writes one into KOSTER_ARCHIVE")

    def outcomes(self, site: Site) -> list[Outcome]:
        """Return the results about *site* in order of time. Raises ArchiveError."""
        found = [
            outcome
            for warc in self._warcs
            for record in self._about(warc, outcome_url(site))
            if (outcome := _outcome(record, site, warc)) is not None
        ]
        return sorted(found, key=lambda outcome: (outcome.at, recorded_at(outcome.known)))

    def whole(self, outcome: Outcome) -> CacheEntry:
        """Return the result with the body of the copy.

        Raises ArchiveError if the body is not found, or if a WARC file cannot be read.
        """
        known, copy = outcome.known, last_copy(outcome.known)
        if copy is None or not outcome.body_bytes:
            return known
        copy = replace(copy, body=self._body(copy, outcome))
        return replace(known, stale=copy) if isinstance(known, FetchFailure) else copy

    def info(self, warc: Path) -> Mapping[str, str]:
        """Return the fields of the warcinfo record in *warc*, such as the settings of the crawl.

        The result is empty if the record is damaged. Raises ArchiveError if *warc* cannot be read.
        """
        with _archive_errors(warc), warc.open("rb") as file:
            _, _, record = next(records_in(file), (0, 0, None))
        lines = record.body.decode("utf-8", "replace").split("\r\n") if record else []
        named = (line.partition(":") for line in lines if ":" in line)
        return {name.strip(): value.strip() for name, _, value in named}

    def _body(self, copy: CachedRobots, outcome: Outcome) -> bytes:
        for warc in sorted(self._warcs, key=lambda each: each != outcome.warc):
            for record in self._about(warc, copy.url, copy.record_id):
                if len(record.body) == outcome.body_bytes:
                    return record.body
        raise ArchiveError(
            f"the record {copy.record_id} of {copy.url} is not in {str(self._path)!r}. If several"
            " workers have written archives, put their files into one folder"
        )

    def _about(self, warc: Path, url: str, record_id: str | None = None) -> Iterator[Record]:
        with _archive_errors(warc), warc.open("rb") as file:
            for fields in fields_about(url, index_of(warc)):
                if record_id in (None, fields.get("record")):
                    file.seek(fields["offset"])
                    _, _, record = next(records_in(file), (0, 0, None))
                    if record and record.url == url:
                        yield record


@contextmanager
def _archive_errors(warc: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArchiveError(f"{str(warc)!r} cannot be read: {error.strerror}") from None


def _outcome(record: Record, site: Site, warc: Path) -> Outcome | None:
    """Return the outcome about *site* in *record*, or None without a valid outcome."""
    if record.kind != "metadata":
        return None
    try:
        told = json.loads(record.body)
        copy, failure = told.get("copy"), told.get("failure")
        size = 0 if copy is None else int(copy.pop("bytes"))
        no_such_host = failure is not None and bool(failure.pop("no_such_host"))
        known = known_from(None if copy is None else {**copy, "body": b""}, failure)
        if told["site"] != str(site):
            return None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    if isinstance(known, FetchFailure):
        known = replace(known, no_such_host=no_such_host)
    return Outcome(record.date, str(told.get("source")), known, size, warc)
