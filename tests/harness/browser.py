"""A page of ours in a real Chromium: Debian's, by way of playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

IN_CHROMIUM = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: apt-get install chromium"),
]

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="make test-browser installs playwright"
    )
    with playwright.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens a page; at the end nothing may have left it, and nothing gone wrong in it."""
    contexts, asked, wrong = [], [], []

    def open_(path: Path, fragment: str = "", *, ready: bool = True, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        context.on("request", lambda request: asked.append(request.url))
        page = context.new_page()
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        page.goto(f"{path.as_uri()}{fragment}")
        if ready:
            page.wait_for_selector("html[data-ready]")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert all(url.startswith(("file:", "blob:", "about:")) for url in asked), asked
    assert not wrong


def rows(page: Any, name: str) -> list[list[str]]:
    """The rows of a table that are shown."""
    found: list[list[str]] = page.evaluate(
        "name => [...document.querySelectorAll(`section[data-name=${name}] tbody tr`)]"
        ".map(row => [...row.children].map(cell => cell.textContent))",
        name,
    )
    return found


def tables(page: Any) -> list[str]:
    names: list[str] = page.evaluate(
        "[...document.querySelectorAll('section.data')].map(each => each.dataset.name)"
    )
    return names


def sort_by(page: Any, name: str, column: int) -> None:
    page.locator(f"section[data-name={name}] thead button").nth(column).click()


def assert_accessible(page: Any) -> None:
    """axe-core finds nothing on a page."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright",
        reason="make test-browser installs axe-playwright-python",
    )
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def cut_off(page: Any, *, narrow: bool) -> list[str]:
    """What is wider than its place.

    Tables may be that are scrolled: on a narrow screen all of them, and always that of sites, of
    which each row opens with all its values.
    """
    found: list[str] = page.evaluate(
        """narrow => [document.documentElement, ...document.body.querySelectorAll('*')]
        .filter(each => !each.matches('.hidden'))
        .filter(each => !each.matches(narrow ? '.scroll' : '#t-sites .scroll'))
        .filter(each => each.clientWidth && each.scrollWidth > each.clientWidth)
        .map(each => `${each.closest('section')?.id} ${each.tagName}.${each.className}`)""",
        narrow,
    )
    return found
