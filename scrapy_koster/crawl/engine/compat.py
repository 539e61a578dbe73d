"""What older releases of Scrapy lack, each with the release that has it.

Where that is the oldest that is supported (``OLDEST_SCRAPY``), it goes out of here.
"""

from __future__ import annotations

from scrapy import signals

# Scrapy 2.18: scrapy.signals has it, and its users.
robots_parsed: object = getattr(signals, "robots_parsed", None) or object()
