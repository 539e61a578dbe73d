"""The threads of the storage, without a thread: each call takes a time that is made up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any


class SimulatedThreads:
    """What ``Threads`` has: of a process that is killed they have no effect any more."""

    def __init__(self, _most: int) -> None:
        pass

    async def run(self, call: Callable[[], Any]) -> Any:
        """Have the effect of *call* after a while, and return its result after another."""
        loop: Any = asyncio.get_running_loop()
        process, is_made = loop.owner, False
        before_secs, after_secs = process.history.disk.secs()
        try:
            await asyncio.sleep(before_secs)
            is_made = True
            result = call()
            await asyncio.sleep(after_secs)
        finally:
            if not is_made and not process.dead:
                call()  # a thread goes on, though nobody waits for it
        return result

    def close(self) -> None:
        """There are no threads that would have to end."""
