"""The releases of Scrapy that are supported, and what an older one is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scrapy_koster.crawl import OLDEST_SCRAPY, refuse_older

ROOT = Path(__file__).parents[2]
SAID = (
    "scrapy-koster needs Scrapy 2.14 or later, and this is Scrapy 2.13.0:"
    " pip install --upgrade 'scrapy>=2.14'"
)


@pytest.mark.parametrize("version", ["1.8.4", "2.13.0"])
def test_an_older_one_is_refused(version: str) -> None:
    with pytest.raises(ImportError, match=f"needs Scrapy 2.14 .* Scrapy {version}: pip install"):
        refuse_older(version)


@pytest.mark.parametrize("version", ["2.14.0", "2.20rc1", "10.0"])
def test_a_newer_one_is_not(version: str) -> None:
    refuse_older(version)


def test_an_older_one_cannot_import_it() -> None:
    code = "import scrapy; scrapy.__version__ = '2.13.0'; from scrapy_koster import Addon"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.rstrip().endswith(f"ImportError: {SAID}")


def test_the_floor_is_the_same_wherever_it_is_named() -> None:
    floor = ".".join(map(str, OLDEST_SCRAPY))
    named = {
        "pyproject.toml": f'"scrapy>={floor}"',
        "Makefile": f"'scrapy=={floor}.*'",
        ".ci/run": f"'scrapy=={floor}.*'",
        "README.md": f"Scrapy {floor} or later",
    }
    for name, text in named.items():
        path = ROOT / name
        if path.exists():  # a source package has no .ci
            assert text in path.read_text("utf-8"), name
