"""`scrapy robots report`: out of the file of a crawl, as a page, as JSON, as CSV."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from harness.commands import Robots
from harness.reports import ABOUT, every_kind, site_named, written

from scrapy_koster.report import numbers, page


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
    assert "2 of 65 sites" in text
    assert not list(tmp_path.glob("*.part"))


def test_json(robots: Robots, database: Path, tmp_path: Path) -> None:
    ran = robots("report", database, "--json")
    [found] = ran.objects
    assert found["sites"] == 65
    assert found["outcomes"] == {
        "obeyed": 60, "without robots.txt": 2, "restricted": 1, "unavailable": 1, "not known": 1
    }  # fmt: skip
    assert found["requests"] == {
        "allowed": sum(range(61)) + 11,
        "refused": {"rule": 21, "restricted": 3, "missing": 0, "unavailable": 2, "delay": 0},
    }
    assert found["rules"][:2] == [
        {"site": site_named(1), "line": 5, "text": "Disallow: /private/", "refused": 12},
        {"site": site_named(3), "line": 2, "text": "Disallow: /", "refused": 7},
    ]
    assert not (tmp_path / "robots-report.html").exists()


def test_csv_has_the_same_numbers(robots: Robots, database: Path) -> None:
    names, *lines = robots("report", database, "--csv").out.splitlines()
    column = names.split(",").index("refused_rule")
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
    assert robots("report", database, "-o", "/dev/null/page.html").status == 2


def test_no_crawl_has_written_one(robots: Robots) -> None:
    ran = robots("report")
    assert (ran.status, "set KOSTER_REPORT" in ran.err) == (2, True)


def test_too_many_sites_for_a_page(
    robots: Robots,
    database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbers, "EVERY_SITE_UP_TO", 50)
    monkeypatch.setattr(numbers, "SITES_THAT_MATTER", 10)
    robots("report", database, "-o", "page.html")
    text = (tmp_path / "page.html").read_text()
    assert "2 of 65 sites" in text
    assert "shows 10 of 65 sites" in text
    assert len((tmp_path / "page.sites.csv").read_text().splitlines()) == 66
    [shown] = json.loads(f"[{robots('report', database, '--json').out}]")
    assert shown["sites"] == 65


def test_a_page_that_cannot_be_made_leaves_the_old_one(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "page.html"
    page.write_page(str(database), str(out))
    before = out.read_text()

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        page.write_page(str(database), str(out))
    assert out.read_text() == before
    assert not list(tmp_path.glob("*.part"))


def test_what_is_compared_is_the_parser_of_the_crawl(tmp_path: Path) -> None:
    about = {**ABOUT, "parser": "StrictestRobotParser"}
    database = written(tmp_path / "strictest.sqlite3", every_kind(), about=about)
    page.write_page(str(database), str(tmp_path / "page.html"))
    made = (tmp_path / "page.html").read_text()
    assert "StrictestRobotParser against RFC 9309" in made
    assert "he draft" not in made
