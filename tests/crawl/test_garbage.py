"""When garbage is collected while a crawl runs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from harness.crawling import Crawl, RecordingSpider
from harness.server import Server
from scrapy.http import Response

from scrapy_koster.crawl.garbage import collected_less_often

OLD, NEW = (700, 10, 10), (2000, 10, 10)


@pytest.fixture
def of_python_312() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*OLD)
    yield
    gc.set_threshold(*before)


pytestmark = pytest.mark.usefixtures("of_python_312")


def test_new_objects_are_looked_at_as_seldom_as_by_python_313() -> None:
    with collected_less_often():
        assert gc.get_threshold() == NEW
    assert gc.get_threshold() == OLD


@pytest.mark.parametrize("chosen", [(500, 10, 10), (50_000, 20, 100), (700, 10, 0), NEW])
def test_what_somebody_has_set_stays(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with collected_less_often():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_what_somebody_sets_meanwhile_stays() -> None:
    with collected_less_often():
        gc.set_threshold(50_000, 10, 10)
    assert gc.get_threshold() == (50_000, 10, 10)


def test_a_crawl_beside_another_changes_nothing() -> None:
    with ExitStack() as first, collected_less_often():
        first.enter_context(collected_less_often())
        first.close()
        assert gc.get_threshold() == NEW
    assert gc.get_threshold() == OLD


@pytest.mark.crawl
async def test_it_is_so_while_a_crawl_runs(crawl: Crawl, server: Server) -> None:
    found = []

    class Looks(RecordingSpider):
        def page(self, response: Response) -> None:
            found.append(gc.get_threshold())

    site = server.site()
    await crawl(Looks, urls=[site.url("/page")])
    assert found == [NEW]
    assert gc.get_threshold() == OLD
