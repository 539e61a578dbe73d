"""The releases of Scrapy that are supported, and what an older one is told."""

from __future__ import annotations

import subprocess
import sys

SAID = (
    "scrapy-koster needs Scrapy 2.14 or later, and this is Scrapy 2.13.0:"
    " pip install --upgrade 'scrapy>=2.14'"
)


def test_an_older_one_cannot_import_it() -> None:
    code = "import scrapy; scrapy.__version__ = '2.13.0'; from scrapy_koster import Addon"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr.rstrip().endswith(f"ImportError: {SAID}")
