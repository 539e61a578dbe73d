"""The page of an audit, in the Chromium of test_report_page.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.audit_logs import BEGAN, Hit, log_of, sinners, written
from harness.audits import audited
from harness.browser import IN_CHROMIUM, Open, checked_by_axe, cut_off, rows, sort_by, tables

from scrapy_koster.audit.audit_page import write_audit
from scrapy_koster.report import pictures

pytestmark = IN_CHROMIUM

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "{{ 7 * 7 }}",
    "\u202eexe.bot",
    "a" * 3000,
)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("audit") / "audit.html"
    write_audit(audited(written(log_of(sinners())) + b"broken\n"), str(path))
    return path


def test_each_table_is_there_and_sorts(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    assert tables(page) == ["robots", "violations", "pace", "unread"]
    for column in range(13):
        sort_by(page, "robots", column)
    page.fill("#q-robots", "stalebot1")
    assert [row[0] for row in rows(page, "robots")] == ["stalebot1"]


def test_the_days_have_a_strip(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    figure = page.locator("figure", has_text="Robot requests on each day")
    assert figure.locator("svg rect.restricted").count() > 3
    days = figure.locator("tbody tr").all_inner_texts()
    figure.locator("summary").click()
    assert len(days) == 41  # also those on which none came
    assert "disobeyed" in page.locator(".kinds").inner_text()


@pytest.mark.parametrize(("hits", "rows"), [([0, 86400], 2), ([0, 3 * 86400], 4), ([0, 10**9], 2)])
def test_days_without_a_robot(hits: list[int], rows: int, tmp_path: Path) -> None:
    log = written([Hit(BEGAN + secs, "somebot/1", "/") for secs in hits])
    write_audit(audited(log), str(tmp_path / "audit.html"))
    made = (tmp_path / "audit.html").read_text()
    strip = made[made.index("Robot requests on each day") :].partition("</figure>")[0]
    assert strip.count('<tr><th scope="row"') == rows


@pytest.mark.parametrize("count", [0, 1, 400])
def test_a_strip_of_any_length(count: int) -> None:
    days = [(f"day {n}", 2, 1) for n in range(count)]
    picture = pictures.strip("days", "Days", "About", [("a", "obeyed"), ("b", "restricted")], days)
    assert len(picture.rows) == count
    assert picture.svg.count("<rect") == 2 * min(count, 100)
    assert ("Each column is 4 days" in picture.about) is (count == 400)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(page_file: Path, opened: Open, scheme: str, width: int) -> None:
    page = opened(page_file, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    found = checked_by_axe(page)
    assert found.violations_count == 0, found.generate_report()
    assert cut_off(page, narrow=width < 1000) == []


def test_the_first_screen_says_who_disobeyed(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for answer in (".lead", ".kinds", ".tile"):
            shown = page.locator(answer).first.bounding_box()
            assert shown["y"] + shown["height"] <= 900
    robots = page.locator(".groups > div").first.inner_text()
    assert robots.startswith("Robots: 50\ndisobeyed\n35\nobeyed\n15\n")


def test_hostile_lines_do_nothing(tmp_path: Path, opened: Open) -> None:
    hits = [
        Hit(BEGAN + n, f"evilbot{n}/1 {text}", f"/private/{text}", client=text)
        for n, text in enumerate(HOSTILE)
    ]
    path = tmp_path / "audit.html"
    found = audited(written(hits) + "".join(f"{text}\n" for text in HOSTILE).encode())
    assert len(found["robots"]) == len(HOSTILE)
    write_audit(found, str(path))
    page = opened(path)
    shown = page.locator("body").inner_text()
    assert "\u202e" not in shown
    assert "7 * 7" in shown
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
