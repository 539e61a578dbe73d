"""Monitors of spidermon."""

from __future__ import annotations

from typing import Any, ClassVar

from spidermon import Monitor, MonitorSuite


class Refusals(Monitor):  # type: ignore[misc]
    seen: ClassVar[list[int]] = []
    data: Any

    def test_refusals(self) -> None:
        self.seen.append(self.data.stats["robotstxt/forbidden"])


class AtTheEnd(MonitorSuite):  # type: ignore[misc]
    monitors: ClassVar[list[type[Monitor]]] = [Refusals]
