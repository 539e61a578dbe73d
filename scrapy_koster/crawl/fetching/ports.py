"""What the retriever is given: what asks sites, and what is kept between crawls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from scrapy_koster.storage.port import GRANTED, Claimed

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from scrapy import Request

    from scrapy_koster.crawl.states import SiteState
    from scrapy_koster.protocol.access import Answer, Copy, Known, NoAnswer
    from scrapy_koster.protocol.exchange import Exchange
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.verdict import Source


class TurnNeededError(Exception):
    """A host with a Crawl-delay has to have a turn before it is asked for a robots.txt."""

    def __init__(
        self, url: str | None = None, hops: int = 0, exchanges: tuple[Exchange, ...] = ()
    ) -> None:
        """*url* is where the site redirects to after so many *hops*, None for the site itself.

        *exchanges* are what was sent and received by then.
        """
        super().__init__(url)
        self.url = url
        self.hops = hops
        self.exchanges = exchanges


class Fetch(Protocol):
    """What asks sites for their /robots.txt. See ``fetcher``."""

    async def fetch(
        self,
        site: Site,
        page: Request,
        stale: Copy | None,
        /,
        *,
        after: TurnNeededError | None = None,
    ) -> Answer | NoAnswer:
        """Ask *site* on behalf of *page*; a *stale* copy is revalidated.

        TurnNeededError if it redirects to a host that needs a turn. With it as *after* the next
        call goes on there.
        """

    def cancel(self) -> None:
        """End what is under way."""


class Store(Protocol):
    """What is kept between crawls; it never fails. See ``storage_calls``."""

    source: Source

    async def open(self) -> None:
        """Prepare, so that the first request does not wait for that."""

    async def get(self, site: Site) -> Known | None:
        """Return what is stored of *site*."""

    async def claim(self, site: Site, *, secs: float, unless_known: bool) -> Claimed:
        """Claim *site* for *secs*: of those who share the storage one asks it.

        With *unless_known* nothing is claimed where something is known of the site.
        """

    async def visit(self, host: str, secs: float, *, begun: bool = False) -> float:
        """Return 0 where a visit to *host* may begin, else for how many seconds it may not yet.

        Visits of all who share the storage are *secs* apart. One that has *begun* is noted.
        """

    async def put(self, site: Site, known: Known) -> None:
        """Store what is known of *site*, which ends a claim of it."""

    async def release(self, site: Site) -> None:
        """End the claim of *site*, if there is one still."""

    async def close(self) -> None:
        """Release all claims, and give back what is held open."""


class Archive(Protocol):
    """What writes the evidence; it never fails. See ``archiver``."""

    async def learnt(
        self,
        site: Site,
        known: Known,
        *,
        source: Source,
        exchanges: tuple[Exchange, ...] = (),
        stale: Copy | None = None,
    ) -> Known:
        """Write what was learnt of *site*, and return it with the record of its copy."""

    async def close(self) -> None:
        """Write what is left to write."""


class FetchPacer(Protocol):
    """The pace at which hosts are visited. See ``pacing.pacer``."""

    async def turn_to_ask(self, state: SiteState, after: TurnNeededError | None) -> bool:
        """Wait until /robots.txt may be asked for; return whether it has a turn now."""

    def needs_turn(self, url: str) -> bool:
        """Whether a turn is needed to visit *url*."""

    async def note(self, state: SiteState, known: Known) -> None:
        """Note that a site was asked, before *known* is stored."""

    def asking(
        self, state: SiteState, after: TurnNeededError | None
    ) -> AbstractAsyncContextManager[None]:
        """Have a site asked for its robots.txt within this: that is one visit.

        Raises TurnNeededError if it has no turn.
        """

    def lengthened(self, state: SiteState, known: Known) -> Known:
        """Return *known*, fresh for some visits at least."""


class Unshared:
    """The part of a Store that has nothing to prepare and nothing to claim."""

    async def open(self) -> None:
        """Do nothing."""

    async def claim(self: Store, site: Site, *, secs: float, unless_known: bool) -> Claimed:  # noqa: ARG002
        """Grant it."""
        return Claimed(await self.get(site), 0.0) if unless_known else GRANTED

    async def visit(self, host: str, secs: float, *, begun: bool = False) -> float:  # noqa: ARG002
        """Let it begin."""
        return 0.0

    async def release(self, *_: object) -> None:
        """Do nothing."""
