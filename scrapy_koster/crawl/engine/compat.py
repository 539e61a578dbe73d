"""Names that older releases of Scrapy lack, with the first release that has the name.

If that release is ``OLDEST_SCRAPY``, remove the name from this module.
"""

from asyncio import to_thread
from typing import Any

from scrapy import exceptions, signals
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.error import DNSLookupError
from twisted.internet.threads import deferToThread
from twisted.web.error import SchemeNotSupported

# Scrapy 2.15: an older Scrapy raises the errors of Twisted.
CannotResolveHostError = getattr(exceptions, "CannotResolveHostError", DNSLookupError)
DownloadTimeoutError = getattr(exceptions, "DownloadTimeoutError", TimeoutError)
ResponseDataLossError = getattr(exceptions, "ResponseDataLossError", OSError)
UnsupportedURLSchemeError = getattr(exceptions, "UnsupportedURLSchemeError", SchemeNotSupported)

# Scrapy 2.18: on an older Scrapy the signal has no receivers.
robots_parsed: object = getattr(signals, "robots_parsed", None) or object()


async def run_in_thread(call: Any, *args: Any) -> Any:  # Scrapy 2.15
    """Return the result of *call*, made in a thread."""
    if is_asyncio_available():
        return await to_thread(call, *args)
    return await maybe_deferred_to_future(deferToThread(call, *args))
