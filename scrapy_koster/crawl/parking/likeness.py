"""Whether a request that was read from a file can be told from the one that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy_koster.crawl.parking.identity import SCALARS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request

_NOT_SET = object()


def is_as_good(back: Request, request: Request) -> bool:
    """Return whether nobody can tell *back* from *request*, whose copy it is.

    What Scrapy's classes keep has to be equal. What others added (values in meta and cb_kwargs,
    attributes and slots of a subclass) may be shared, so it also has to be immutable. It may raise
    anything: what is compared may be anybody's.
    """
    if type(back) is not type(request):
        return False
    values = (*request.meta.values(), *request.cb_kwargs.values(), *_added(request).values())
    return (
        all(map(_is_immutable, values))
        # Written out, since 1 == True.
        and _written(_added(back)) == _written(_added(request))
        and all(getattr(back, name) == getattr(request, name) for name in request.attributes)
    )


def _is_immutable(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_immutable, value))
    return value is _NOT_SET or type(value) in SCALARS


def _written(values: dict[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in values.items()}


def _added(request: Request) -> dict[str, Any]:
    """Return what a request has besides what Scrapy's classes keep."""
    slots = {name: getattr(request, name, _NOT_SET) for name in _slots(type(request))}
    return {**slots, **getattr(request, "__dict__", {})}


def _slots(kind: type) -> Iterator[str]:
    for cls in kind.__mro__:
        if cls.__module__.partition(".")[0] == "scrapy":
            continue
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            if name not in ("__dict__", "__weakref__"):
                yield f"_{cls.__name__.lstrip('_')}{name}" if is_private else name
