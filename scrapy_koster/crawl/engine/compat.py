"""What older releases of Scrapy lack, each with the release that has it.

Where that is the oldest that is supported (``OLDEST_SCRAPY``), it goes out of here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.core.scheduler import BaseScheduler

# Scrapy 2.18: scrapy.signals has it, and its users.
robots_parsed: object = getattr(signals, "robots_parsed", None) or object()


# Scrapy 2.19: the engine has it in public.
def scheduler_of(engine: Any) -> BaseScheduler | None:
    """Return the scheduler of a crawl, None before it is opened."""
    if hasattr(type(engine), "scheduler"):
        found: BaseScheduler | None = engine.scheduler
        return found
    slot = engine._slot  # noqa: SLF001
    return None if slot is None else slot.scheduler


# Scrapy 2.19: a crawl whose start() has raised ends with a reason of its own.
def has_start_failed(engine: Any) -> bool:
    """Return whether it has."""
    return bool(getattr(engine, "_start_error", False))
