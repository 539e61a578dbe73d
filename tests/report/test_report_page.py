"""The page of a report, in a real Chromium: Debian's, by way of playwright."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from harness.browser import IN_CHROMIUM, Open, assert_accessible, cut_off, rows, sort_by, tables
from harness.reports import (
    ROBOTS,
    every_kind,
    obeyed,
    page_of,
    refused,
    row,
    sample,
    site_named,
)

from scrapy_koster.protocol.exchange import digest_of
from scrapy_koster.report.tally import Tally

pytestmark = IN_CHROMIUM


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tally = every_kind()
    for facts in tally.rows["site"].values():
        facts["digest"] = digest_of(ROBOTS)
    return page_of(tmp_path_factory.mktemp("page"), tally)


def _key(text: str) -> tuple[bool, Any]:
    number = re.fullmatch(r"([\d,]+)( [A-Za-z]+)?", text)
    return (text == "", int(number[1].replace(",", "")) if number else text)


def show_all(page: Any, name: str) -> list[list[str]]:
    more = page.locator(f"section[data-name={name}]").get_by_role("button", name="Show more")
    while more.is_visible():
        more.click()
    found: list[list[str]] = rows(page, name)
    return found


def test_each_table_sorts_by_each_column_and_filters(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    for name in tables(page):
        everything = show_all(page, name)
        heads = page.locator(f"section[data-name={name}] thead th")
        for column in range(heads.count()):
            orders = []
            for _ in range(2):
                sort_by(page, name, column)
                found = show_all(page, name)
                assert sorted(found) == sorted(everything)
                full = [row[column] for row in found if row[column]]
                assert [row[column] for row in found][: len(full)] == full  # empty cells are last
                descending = heads.nth(column).get_attribute("aria-sort") == "descending"
                assert full == sorted(full, key=_key, reverse=descending)
                orders.append(descending)
            assert set(orders) == {True, False}
        words = max(everything[-1], key=len)
        page.fill(f"#q-{name}", words.upper())
        found = rows(page, name)
        assert found
        assert all(words in " ".join(row) for row in found)
        page.fill(f"#q-{name}", "nothing-has-this")
        assert rows(page, name) == []
        assert "0 of" in page.locator(f"section[data-name={name}] [role=status]").text_content()


def test_a_site_opened(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    site = site_named(1)
    page.locator("section[data-name=rules]").get_by_role("link", name=site).first.click()
    page.wait_for_selector("dialog[open] table.file")
    assert page.locator("#detail-title").text_content() == site
    refusing = page.locator("tr.refusing").all_text_contents()
    assert refusing == ["512|Disallow: /private/"]  # line 5, 12 refused, of our record
    assert page.locator("tr.lit").all_text_contents() == ["4|User-agent: *", "6|Disallow: /*.pdf"]
    assert len(page.locator("ul.samples li").all()) == 5
    command = page.locator("dialog code").first.text_content()
    explained = rf"scrapy robots explain '{site}/private/\d+' -s ROBOTSTXT_USER_AGENT='it'\\''s'"
    assert re.fullmatch(explained, command)
    assert "site=http" in page.evaluate("location.hash")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "site=" not in url)  # the page's policy forbids eval in a wait
    opened(page_file, f"#site={site}").wait_for_selector("dialog[open] table.file")


def test_without_javascript(page_file: Path, opened: Open) -> None:
    page = opened(page_file, ready=False, java_script_enabled=False)
    text = page.locator("body").inner_text()
    assert "Closed: 2 of 65 sites (restricted: 1, unavailable: 1)." in text
    assert "Disallow: /private/" in text
    assert "Enable JavaScript" in text


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(page_file: Path, opened: Open, scheme: str, width: int) -> None:
    page = opened(page_file, color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    assert_accessible(page)
    assert cut_off(page, narrow=width < 1000) == []
    page.locator("section[data-name=rules] td.site a").first.click()
    page.wait_for_selector("dialog[open]")
    assert_accessible(page)


def test_the_first_screen_answers_in_this_order(page_file: Path, opened: Open) -> None:
    page = opened(page_file)
    questions = page.locator(".answers h2").all_inner_texts()
    assert questions == [
        "Was anything fetched that should not have been?",
        "Why were requests refused?",
        "What might have been missed?",
        "What can you do?",
    ]
    answers = page.locator(".answers section > div")
    assert answers.nth(0).inner_text().startswith("By the draft, no. Pages that RFC 9309")
    assert "12 refused by a rule (sites: 1) Disallow: /private/" in answers.nth(1).inner_text()
    last = page.locator(".answers section").last.bounding_box()
    assert last["y"] + last["height"] <= 900
    for link in page.locator(".answers a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert tables(page) == ["why", "closed", "rules", "starts", "hazards", "looser", "sites"]


HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "{{ 7 * 7 }}",
    "\u202etxt.exe",
    "\x00nul",
    "'; alert(3); '",
    "__proto__",
)


def test_hostile_text_does_nothing(tmp_path: Path, opened: Open) -> None:
    tally = Tally()
    for n, text in enumerate(HOSTILE):
        site = f"http://{text}.example"
        obeyed(tally, site, redirect=text, reason=text)
        row(tally, site).update(record=text, delay=text)
        refused(tally, site, 1, text, 2)
        sample(tally, site, "rule", 1, f"{site}/{text}")
        tally.add("failure", text, attempts=n + 1)
    lines = "\n".join(HOSTILE).encode("utf-8", "surrogatepass")
    body = b"User-agent: *\n" + lines + b"\nDisallow: /" + b"x" * 1_000_000 + b"\n"
    page = opened(page_of(tmp_path, tally, robots=body))
    assert len(rows(page, "sites")) == len(HOSTILE)
    shown = page.locator("body").inner_text()
    assert "\u202e" not in shown
    assert "\\u202e" in shown
    assert "7 * 7" in shown
    for link in range(len(HOSTILE)):
        page.locator("section[data-name=sites] td.site a").nth(link).click()
        page.wait_for_selector("dialog[open] table.file")
        assert "\u202e" not in page.locator("dialog").inner_text()
        page.keyboard.press("Escape")
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
