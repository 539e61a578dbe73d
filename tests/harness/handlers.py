"""Download handlers of Scrapy, by the end of their name."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_reactor_installed

FOLDER = "scrapy.core.downloader.handlers"


def loaded(kind: str) -> Any:
    """The handler of Scrapy, or skip."""
    of_twisted = kind.startswith("http11")
    if not (is_reactor_installed() if of_twisted else is_asyncio_available()):
        pytest.skip("needs another kind of loop")
    try:
        return load_object(f"{FOLDER}.{kind}DownloadHandler")
    except (ImportError, NameError):
        pytest.skip("this Scrapy has it not, or the library is not installed")
