"""The lots of a parking: requests that wait for the same thing, and how many these are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request

    from scrapy_koster.crawl.parking.file import Place


class Lot:
    """Requests that wait for the same thing."""

    __slots__ = ("count", "held", "key", "mark", "name", "opened", "site")

    def __init__(self, site: str, key: str, name: str) -> None:
        self.site = site
        self.key = key
        self.name = name
        self.held: list[tuple[Place, Request]] = []
        self.count = 0
        """Of those that are in the file alone as well."""
        self.opened = False
        self.mark: Callable[[Request], None] | None = None
        """Called with each request that comes out."""


class Lots:
    """The lots by name: of each site one, one for turns of its host, and those that come out."""

    def __init__(self) -> None:
        self.by_name: dict[str, Lot] = {}
        """With those that were given up and have not come out yet."""
        self._by_key: dict[str, Lot] = {}
        """Those that requests are put into."""
        self._numbers = 0

    def __iter__(self) -> Iterator[Lot]:
        return iter(list(self.by_name.values()))

    def lot(self, site: str, *, for_turn: bool = False) -> Lot:
        """Return that of a site, or that for turns of its host; a new one if there is none."""
        key = _turn(site) if for_turn else site
        return self._by_key.get(key) or self.new(site, key)

    def new(self, site: str, key: str) -> Lot:
        """Return a new one, which takes the place of that of this key."""
        name = key
        while name in self.by_name:
            self._numbers += 1
            name = f"{key} {self._numbers}"
        lot = self._by_key[key] = self.by_name[name] = Lot(site, key, name)
        return lot

    def of_turns(self, site: str) -> Lot | None:
        """Return the lot for turns, None if there is none."""
        return self._by_key.get(_turn(site))

    def of(self, site: str) -> list[Lot]:
        """Return those of a site that requests are put into."""
        keys = (site, _turn(site))
        return [lot for key in keys if (lot := self._by_key.get(key)) is not None]

    def put_back(self, lot: Lot) -> None:
        """Have requests put into *lot* again."""
        self._by_key[lot.key] = lot

    def put_apart(self, lot: Lot) -> None:
        """Have no more requests put into *lot*."""
        if self._by_key.get(lot.key) is lot:
            del self._by_key[lot.key]

    def remove(self, lot: Lot) -> None:
        """Forget *lot*: it is empty."""
        del self.by_name[lot.name]
        self.put_apart(lot)

    def by_site(self) -> Counter[str]:
        """Return how many requests wait for each site."""
        sites: Counter[str] = Counter()
        for lot in self.by_name.values():
            sites[lot.site] += lot.count
        return sites

    def clear(self) -> None:
        """Let nothing out any more."""
        self._by_key.clear()


def _turn(site: str) -> str:
    """Return the key of the lot of those who wait for a turn: no site is called so."""
    return f"{site} turn"
