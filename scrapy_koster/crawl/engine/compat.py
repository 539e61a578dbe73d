"""Names that older releases of Scrapy lack, with the first release that has the name.

If that release is ``OLDEST_SCRAPY``, remove the name from this module.
"""

from scrapy import signals

# Scrapy 2.18: on an older Scrapy the signal has no receivers.
robots_parsed: object = getattr(signals, "robots_parsed", None) or object()
