"""Names of Scrapy that are not public: see scrapy_internals.py.

Those that a crawl needs are looked up when it starts, as each crawl of the tests does.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scrapy_koster.crawl.scrapy_internals import check_internals


def test_a_crawl_does_not_start_without_one() -> None:
    """It might not obey robots.txt."""
    crawler: Any = SimpleNamespace(engine=SimpleNamespace(_slot=object()))
    with pytest.raises(RuntimeError, match=r"has no scrapy.core.engine._Slot.closing. The crawl"):
        check_internals(crawler)
