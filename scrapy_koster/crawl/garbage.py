"""When Python collects garbage while a crawl runs."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# What Python has up to 3.12, and the first of these in 3.13.
_DEFAULT = (700, 10, 10)
_YOUNG = 2000


@contextmanager
def postponed() -> Iterator[None]:
    """Have no garbage collected meanwhile, where it is: the first full collection takes 0.04 s."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def collected_less_often() -> Iterator[None]:
    """Have new objects looked at as seldom as Python 3.13 does by itself.

    Sites go on together, and each has a hundred new objects when it does. So up to 3.12 there are
    twice as many collections as with Scrapy's own middleware, and most are in vain. What
    somebody else has set stays.
    """
    if gc.get_threshold() != _DEFAULT:
        yield
        return
    ours = (_YOUNG, *_DEFAULT[1:])
    gc.set_threshold(*ours)
    try:
        yield
    finally:
        if gc.get_threshold() == ours:
            gc.set_threshold(*_DEFAULT)
