"""`scrapy robots report`: out of the file of a crawl, as a page, as JSON, as CSV."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness.commands import Robots
from harness.reports import (
    ABOUT,
    every_kind,
    obeyed,
    row,
    site_named,
    written,
)

from scrapy_koster.report import page
from scrapy_koster.report.tally import Tally


@pytest.fixture
def database(tmp_path: Path) -> Path:
    folder = tmp_path / ".scrapy" / "koster" / "reports"
    folder.mkdir(parents=True)
    return written(folder / "web-20261121T170000-1.sqlite3", every_kind())


def test_the_page_of_the_newest(robots: Robots, database: Path, tmp_path: Path) -> None:
    ran = robots("report")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == f"robots-report.html: the report of {database}\n"
    text = (tmp_path / "robots-report.html").read_text()
    assert "of 65 sites" in text
    assert not list(tmp_path.glob("*.part"))


def test_json_has_the_counts_of_the_crawl(robots: Robots, database: Path, tmp_path: Path) -> None:
    ran = robots("report", database, "--json")
    [found] = ran.objects
    assert found["sites"] == 65
    assert found["outcomes"] == {
        "obeyed": 60, "without robots.txt": 2, "restricted": 1, "unavailable": 1, "not known": 1
    }  # fmt: skip
    assert found["requests"]["allowed"] == sum(range(61)) + 11
    refused = found["requests"]["refused"]
    assert {ground: count for ground, count in refused.items() if count} == {
        "rule": 21, "restricted": 3, "unavailable": 2,
    }  # fmt: skip
    assert found["rules"][:2] == [
        {"site": site_named(1), "line": 5, "text": "Disallow: /private/", "refused": 12},
        {"site": site_named(3), "line": 2, "text": "Disallow: /", "refused": 7},
    ]
    assert found["closed_by"] == {
        "rules": 0, "restricted": 1, "missing": 0, "html": 0, "unavailable": 1
    }  # fmt: skip
    assert found["closed"] == 2
    assert found["why"] == [
        {"requests": 12, "sites": 1, "reason": "a rule", "rule": "Disallow: /private/"},
        {"requests": 7, "sites": 1, "reason": "a rule", "rule": "Disallow: /"},
        {"requests": 3, "sites": 1, "reason": "HTTP 401 or 403", "rule": ""},
        {"requests": 2, "sites": 1, "reason": "a rule", "rule": "Disallow: /*.pdf"},
        {"requests": 2, "sites": 1, "reason": "robots.txt unavailable", "rule": ""},
    ]
    assert not (tmp_path / "robots-report.html").exists()


def test_csv_has_the_same_numbers(robots: Robots, database: Path) -> None:
    names, *lines = robots("report", database, "--csv").out.splitlines()
    column = names.split(",").index("refused_rule")
    assert "digest" in names.split(",")
    assert len(lines) == 65
    assert sum(int(line.split(",")[column]) for line in lines) == 21


def test_against_an_older_one(robots: Robots, database: Path, tmp_path: Path) -> None:
    ran = robots("report", database, "-o", "new.html", "--against", database)
    assert ran.status == 0
    assert "Compared with Crawl of web" in (tmp_path / "new.html").read_text()


def test_what_cannot_be_read(robots: Robots, tmp_path: Path) -> None:
    missing = robots("report", "missing.sqlite3")
    assert (missing.status, missing.out) == (3, "")
    assert "missing.sqlite3 is not there" in missing.err
    (tmp_path / "text.sqlite3").write_text("no database at all, " * 100)
    assert robots("report", "text.sqlite3").status == 3
    with sqlite3.connect(tmp_path / "other.sqlite3") as other:
        other.execute("CREATE TABLE site (site)")
    other.close()
    assert "another program" in robots("report", "other.sqlite3").err
    with sqlite3.connect(written(tmp_path / "new.sqlite3", every_kind())) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    assert "version 99" in robots("report", "new.sqlite3").err


def test_what_is_wrong_usage(robots: Robots, database: Path) -> None:
    both = robots("report", database, "--json", "--csv")
    assert (both.status, "one of them" in both.err) == (2, True)
    against = robots("report", database, "--json", "--against", database)
    assert (against.status, "needs a page" in against.err) == (2, True)
    assert robots("report", database, "-o", "/dev/null/page.html").status == 2
    database.unlink()
    none = robots("report")
    assert (none.status, "set KOSTER_REPORT" in none.err) == (2, True)


def without_hazards() -> Tally:
    """Return the counts of a crawl without differences between the parser and RFC 9309."""
    tally = every_kind()
    row(tally, site_named(2))["looser"] = 0
    tally.rows["hazard"].clear()
    return tally


EVERY_KIND = [
    "By the draft, no. Pages that RFC 9309 forbids: 3.",
    "Allowed: robots.txt is an HTML page: 2",
    '12 refused by a rule (sites: 1) <code>Disallow: /private/</code> <a href="#t-why">',
    "Sites that were unavailable and given up: 1",
    "Sites whose robots.txt is not known: 1",
    "Files that were too long and cut off: 1",
    "Dropped links (nofollow): 4",
    "Choose start URLs that these sites allow. <a",
    "Do not follow links to the forbidden paths. <a",
    "Request access from the sites that return 401 or 403. <a",
    "Check the unavailable sites, or crawl them later. <a",
    "Raise KOSTER_MAX_BYTES to read long files completely. <a",
]
"""The lines of the four answers for every kind of site."""

SURVEY = {"survey": 1, "title": "Survey of 9 URLs", "finished": ""}
STRICT = {"parser": "StrictestRobotParser"}


def calm() -> Tally:
    """Return the counts of a crawl without a refused request."""
    tally = Tally()
    obeyed(tally, site_named(1))
    return tally


@pytest.mark.parametrize(
    ("counts", "about", "said"),
    [
        (every_kind, SURVEY, ["A survey fetches no page.", "The survey had not finished"]),
        (every_kind, {"dry_run": 1}, ["Yes. This was a dry run. Forbidden requests that were"]),
        (calm, {}, ["No request was refused.", "No. Only allowed requests were sent: 3."]),
        (calm, {}, ["<p>Nothing known.</p>", "<p>Nothing.</p>"]),
        (every_kind, {}, EVERY_KIND),
        (calm, {"compared": 0}, ["By your parser, no. Only allowed requests were sent: 3."]),
        (without_hazards, STRICT, ["No. Only allowed requests were sent: 1,841."]),
    ],
)
def test_the_page_answers_the_four_questions(
    tmp_path: Path, counts: Callable[[], Tally], about: dict[str, Any], said: list[str]
) -> None:
    database = written(tmp_path / "a.sqlite3", counts(), about={**ABOUT, **about})
    page.write_page(str(database), str(tmp_path / "page.html"))
    made = (tmp_path / "page.html").read_text()
    assert [words for words in said if words not in made] == []
    assert about is not STRICT or "he draft" not in made
    assert "dry_run" not in about or "Dropped" not in made, "a dry run drops nothing"
