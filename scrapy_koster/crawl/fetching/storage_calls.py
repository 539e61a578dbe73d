"""Calls of a storage, which may be anybody's: whatever it returns or raises, the crawl goes on."""

from __future__ import annotations

from collections.abc import Coroutine
from concurrent import futures
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, cast

from scrapy_koster.crawl.engine.private import CANCELLED
from scrapy_koster.crawl.fetching.storage_thread import all_made
from scrapy_koster.storage.port import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy_koster.storage.port import Storage

_NEEDED = ("get", "put", "close")
_PIPED = ("get", "put")
# What a storage raises of its own accord, and would be taken for the end of the crawl or of a loop.
_MISTAKEN = (*CANCELLED, futures.CancelledError, StopIteration, SystemExit)


async def called(storage: object, method: str, *args: Any, **how: Any) -> Any:
    """Call a *method* of *storage*, and return the result."""
    try:
        returned = getattr(storage, method)(*args, **how)
    except _MISTAKEN as error:  # a StopIteration cannot leave a coroutine
        raise mistaken(error) from error
    no_coroutine(method, returned)
    return returned


async def piped(pipeline: object, method: str, *args: Any, **how: Any) -> Any:
    """Call a *method* of *pipeline*. Ask for the result when the whole batch has been made."""
    later = await called(pipeline, method, *args, **how)
    if not hasattr(later, "result"):
        raise StorageError(
            f"{method}() of the pipeline returned a {type(later).__name__}, which has no result()"
        )
    await all_made()
    return await called(later, "result")


class Failing:
    """Tells of each failure within it, and raises what may be mistaken as a StorageError."""

    # Not of @contextmanager, which takes four times as long: each call enters it.
    __slots__ = ("_failed",)

    def __init__(self, failed: Callable[[], object]) -> None:
        """*failed* is called for each failure."""
        self._failed = failed

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, (Exception, *_MISTAKEN)):
            self._failed()
        if isinstance(error, _MISTAKEN):
            raise mistaken(error) from error


def mistaken(error: BaseException) -> StorageError:
    """Return what to raise for an error that would be taken for the end of something else."""
    return StorageError(f"it raised {type(error).__name__}")


def checked(made: object) -> Storage:
    """Return what ``from_settings`` has returned; StorageError if that is no storage."""
    no_coroutine("from_settings", made)
    if isinstance(made, type) or not all(hasattr(made, name) for name in _NEEDED):
        raise StorageError(f"from_settings() returned a {type(made).__name__}, not a storage")
    return cast("Storage", made)


def context(method: str, made: object) -> AbstractContextManager[object]:
    """Return what *method* has returned; StorageError if that is no context manager."""
    no_coroutine(method, made)
    if not isinstance(made, AbstractContextManager):
        raise StorageError(f"{method}() returned a {type(made).__name__}, not a context manager")
    return made


def checked_pipeline(made: object) -> object:
    """Return the value of the context of ``pipeline``; StorageError if it takes no calls."""
    if not all(hasattr(made, name) for name in _PIPED):
        raise StorageError(
            f"the value of the context of pipeline() is a {type(made).__name__}, not an object"
            " with the methods of the storage"
        )
    return made


def no_coroutine(method: str, returned: object) -> None:
    """Raise StorageError if a method is a coroutine function: nobody awaits it."""
    if isinstance(returned, Coroutine):
        returned.close()  # else Python warns that it was never awaited
        raise StorageError(
            f"{method}() returned a coroutine. Remove async from its definition: a storage that"
            " blocks is called in a thread"
        )
