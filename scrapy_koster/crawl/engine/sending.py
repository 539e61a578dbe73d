"""The functions that a downloader calls for each request that it sends."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from scrapy import Request


class SendingHooks:
    """Functions for requests that are about to be sent. They do nothing until they are set."""

    def __init__(self) -> None:
        self.check: Callable[[Request], object] = lambda _: None
        """Raises IgnoreRequest for a request that may not be sent any more."""
        self.visit: Callable[[Request], AbstractAsyncContextManager[None] | None] = lambda _: None
        """Returns the context in which a request is sent, None for none."""
        self.are_called = False
        """Whether the downloader of the crawl is one that calls these functions."""
        self.placeless: Counter[Request] = Counter()
        """Requests in the downloader that take no place of CONCURRENT_REQUESTS."""

    def begin_calls(self) -> None:
        """Note that there is a downloader that calls these functions."""
        self.are_called = True

    def check_by(self, check: Callable[[Request], object]) -> None:
        """Set the function that raises IgnoreRequest for a request that may not be sent."""
        self.check = check

    def send_within(
        self, visit: Callable[[Request], AbstractAsyncContextManager[None] | None]
    ) -> None:
        """Set the function that returns the context in which a request is sent."""
        self.visit = visit

    @contextmanager
    def place_given_up(self, request: Request) -> Iterator[None]:
        """Let *request* take no place of CONCURRENT_REQUESTS meanwhile."""
        self.placeless[request] += 1
        try:
            yield
        finally:
            self.placeless[request] -= 1
            if not self.placeless[request]:
                del self.placeless[request]
