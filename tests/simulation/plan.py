"""What a seed makes up: the settings, the requests, and what befalls the processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from scrapy import Request

from simulation.web import PREFIXES

Start = list[tuple[float, Callable[[], Request]]]


@dataclass
class Node:
    """One request, and what its page has."""

    number: int
    url: str
    to: str | None = None
    """Where its page redirects to."""
    priority: int = 0
    wait: float = 0.0
    links: list[Node] = field(default_factory=list)

    def request(self) -> Request:
        meta: dict[str, Any] = {"n": self.number}
        if self.to is not None:
            meta["to"] = self.to
        return Request(self.url, priority=self.priority, meta=meta)


class Plan:
    """The requests of a history: each has a number, and is found on one page or by the spider."""

    def __init__(self, chance: Random, hosts: list[str], requests: int) -> None:
        self._chance = chance
        self._hosts = hosts
        self.nodes: list[Node] = []
        roots = [self._node() for _ in range(max(1, requests // 2))]
        self.roots = list(roots)
        while len(self.nodes) < requests:
            on = chance.choice(self.nodes[: len(roots) * 2])
            on.links.append(self._node())

    def _url(self) -> str:
        chance = self._chance
        path = chance.choice((*PREFIXES, "/e"))
        return f"http://{chance.choice(self._hosts)}{path}/{len(self.nodes)}"

    def _node(self) -> Node:
        chance = self._chance
        node = Node(
            len(self.nodes),
            self._url(),
            to=self._url() if chance.random() < 0.1 else None,
            priority=chance.choice((0, 0, 0, 1, -1)),
            wait=chance.choice((0.0, 0.0, 0.0, 0.0, 0.1, 2.0)),
        )
        self.nodes.append(node)
        return node

    def start(self, share: int, of: int) -> Start:
        """Return what the *share*-th *of* so many spiders starts with."""
        return [(node.wait, node.request) for node in self.roots[share::of]]


def settings(chance: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return settings of Scrapy, and of scrapy-koster."""
    pick = chance.choice
    scrapys = {
        "ROBOTSTXT_OBEY": True,
        "USER_AGENT": "figtree",
        "CONCURRENT_REQUESTS": pick((1, 2, 4, 8)),
    }
    first = pick((1, 2, 5))
    kosters = {
        "KOSTER_TIMEOUT_SECS": pick((3, 5)),
        "KOSTER_DEFER_FIRST_SECS": first,
        "KOSTER_DEFER_MAX_SECS": max(first, pick((5, 20))),
        "KOSTER_DEFER_LIMIT_SECS": pick((10, 30, 60)),
        "KOSTER_IDLE_LIMIT_SECS": pick((3, 10, 20)),
        "KOSTER_UNAVAILABLE": pick(("defer",) * 8 + ("allow", "disallow")),
        "KOSTER_STALE_IF_ERROR_SECS": pick((0, 0, 0, 20)),
        "KOSTER_EXPIRY_SECS": pick((20, 1000)),
        "KOSTER_EXPIRY_MIN_SECS": pick((0, 0, 5)),
        "KOSTER_EXPIRY_MAX_SECS": 2000,
        "KOSTER_RESTRICTED_EXPIRY_SECS": pick((10, 1000)),
        "KOSTER_MEMORY_BYTES": pick((12_000, 64_000_000, 64_000_000)),
        "ROBOTSTXT_USER_AGENT": "figtree",
    }
    return scrapys, kosters
