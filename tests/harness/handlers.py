"""Download handlers of Scrapy, by the end of their name."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_asyncio_reactor_installed, is_reactor_installed

FOLDER = "scrapy.core.downloader.handlers"


def loaded(kind: str) -> Any:
    """The handler of Scrapy, or skip."""
    # A fixture may ask, while no loop runs.
    has_reactor = is_reactor_installed()
    has_asyncio = not has_reactor or is_asyncio_reactor_installed()
    if not (has_reactor if kind.startswith("http11") else has_asyncio):
        pytest.skip("needs another kind of loop")
    try:
        return load_object(f"{FOLDER}.{kind}DownloadHandler")
    except (ImportError, NameError):
        pytest.skip("this Scrapy has it not, or the library is not installed")
