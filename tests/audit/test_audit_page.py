"""The page of an audit, in the Chromium of test_report_page.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness.audit_logs import BEGAN, Hit, log_of, sinners, written
from harness.audits import audited
from harness.browser import IN_CHROMIUM, Open, assert_accessible, cut_off, rows, sort_by, tables

from scrapy_koster.audit.audit_page import write_audit

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


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(page_file: Path, opened: Open, scheme: str, width: int) -> None:
    page = opened(page_file, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert_accessible(page)
    assert cut_off(page, narrow=width < 1000) == []


def test_the_first_screen_says_who_disobeyed(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for answer in (".lead", ".kinds"):
            shown = page.locator(answer).first.bounding_box()
            assert shown["y"] + shown["height"] <= 900
    assert "35 of 50 robots" in page.locator(".lead").inner_text()
    assert "disobeyed" in page.locator(".kinds").inner_text()
    assert tables(page) == ["robots", "violations", "pace", "days", "unread"]
    sort_by(page, "days", 0)
    assert all(day[0].startswith("2026-") for day in rows(page, "days"))


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
    assert page.locator("script").count() == 2
