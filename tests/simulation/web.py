"""Sites that answer, hang, fail, change their file, redirect and slow down."""

from __future__ import annotations

import socket
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import Response

from scrapy_koster.crawl.engine.compat import CannotResolveHostError

PREFIXES = ("/a", "/b", "/c", "/d")
_LATENCIES = (0.0, 0.0, 0.05, 0.05, 0.3, 1.0, 4.0)
_PAGE_SECS = 20.0


@dataclass(frozen=True)
class Phase:
    """How a site behaves from one moment on."""

    kind: str
    latency: float = 0.0
    body: bytes = b""
    max_age: int | None = None
    has_etag: bool = False
    retry_after: int | None = None
    target: str = ""

    @property
    def etag(self) -> str:
        return f'"{sum((at + 1) * octet for at, octet in enumerate(self.body))}"'

    def headers(self) -> dict[str, str]:
        found = {}
        if self.max_age is not None:
            found["Cache-Control"] = f"max-age={self.max_age}"
        if self.has_etag:
            found["ETag"] = self.etag
        if self.retry_after is not None:
            found["Retry-After"] = str(self.retry_after)
        return found


@dataclass
class Site:
    """One host, with what it does from when on."""

    host: str
    since: list[float] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    def phase(self, now: float) -> Phase:
        return self.phases[bisect_right(self.since, now) - 1]


@dataclass(frozen=True)
class Reply:
    """What comes back after *secs*; neither a response nor an error: nothing ever does."""

    secs: float
    response: Response | None = None
    error: Exception | None = None


class Web:
    """All sites. What they do follows from the seed, and from when they are asked."""

    def __init__(
        self, chance: Random, *, sites: int, until: float, delays: Random | None = None
    ) -> None:
        """With *delays* files have a Crawl-delay, as it has them."""
        self._chance = chance
        self._delays = delays
        hosts = [f"s{number}.example" for number in range(sites)]
        self.sites = {host: Site(host) for host in hosts}
        for site in self.sites.values():
            self._live(site, until)

    def _live(self, site: Site, until: float) -> None:
        """Make up what becomes of *site*; from *until* on it answers."""
        when, chance = 0.0, self._chance
        while when < until:
            site.since.append(when)
            site.phases.append(self._phase(site))
            when += chance.choice((3.0, 10.0, 30.0, 100.0, 1000.0))
        if chance.random() < 0.7:
            site.since.append(until)
            site.phases.append(self._file(0.05))

    def _phase(self, site: Site) -> Phase:
        chance = self._chance
        latency = chance.choice(_LATENCIES)
        match chance.choices(_KINDS, _WEIGHTS)[0]:
            case "file":
                return self._file(latency)
            case "redirect":
                host = chance.choice(list(self.sites))
                path = chance.choice(("/robots.txt", "/robots.txt", "/moved.txt"))
                return Phase("redirect", latency, target=f"http://{host}{path}")
            case "status":
                status = chance.choice(("404", "404", "403", "410", "401"))
                return Phase(status, latency, max_age=chance.choice((None, 3, 30)))
            case "error":
                status = chance.choice(("503", "503", "500", "429", "304"))
                return Phase(status, latency, retry_after=chance.choice((None, None, 3, 40)))
            case kind:
                return Phase(kind, latency)

    def _file(self, latency: float) -> Phase:
        chance = self._chance
        closed = [prefix for prefix in PREFIXES if chance.random() < 0.3]
        if chance.random() < 0.1:
            closed = ["/"]
        lines = ["User-agent: *", *(f"Disallow: {prefix}" for prefix in closed), ""]
        if self._delays is not None and self._delays.random() < 0.7:
            lines.insert(1, f"Crawl-delay: {self._delays.choice((0.5, 2, 6))}")
        return Phase(
            "file",
            latency,
            body="\n".join(lines).encode(),
            max_age=chance.choice((None, None, 0, 5, 30, 1000)),
            has_etag=chance.random() < 0.5,
        )

    def reply(self, request: Request, now: float) -> Reply:
        """Return what becomes of *request*, which is sent *now*."""
        parts = urlsplit(request.url)
        site = self.sites[str(parts.hostname)]
        if parts.path in ("/robots.txt", "/moved.txt"):
            return self._robots_txt(request, site, site.phase(now))
        return self._page(request, site.phase(now))

    def _robots_txt(self, request: Request, site: Site, phase: Phase) -> Reply:
        match phase.kind:
            case "hang":
                return Reply(0.0)
            case "refuse" | "reset" | "nohost" | "dns":
                return Reply(phase.latency, error=_ERRORS[phase.kind](site.host))
            case "redirect":
                found = Response(request.url, status=302, headers={"Location": phase.target})
                return Reply(phase.latency, found)
            case "file":
                return self._file_reply(request, phase)
            case status:
                headers = phase.headers()
                return Reply(phase.latency, Response(request.url, int(status), headers, b"x"))

    @staticmethod
    def _file_reply(request: Request, phase: Phase) -> Reply:
        asked = request.headers.get("If-None-Match")
        if phase.has_etag and asked is not None and asked.decode() == phase.etag:
            return Reply(phase.latency, Response(request.url, 304, phase.headers()))
        return Reply(phase.latency, Response(request.url, 200, phase.headers(), phase.body))

    def _page(self, request: Request, phase: Phase) -> Reply:
        if phase.kind in ("hang", "refuse", "reset", "nohost", "dns"):
            secs = _PAGE_SECS if phase.kind == "hang" else phase.latency
            return Reply(secs, error=ConnectionRefusedError(phase.kind))
        to = request.meta.get("to")
        if to is not None and to != request.url:
            return Reply(phase.latency, Response(request.url, 302, {"Location": to}))
        return Reply(phase.latency, Response(request.url, 200, {}, b"a page"))

    def is_healthy(self, origin: str, since: float, now: float) -> bool:
        """Return whether a site has had a file, or none, all the time, and answered soon."""
        site = self.sites[str(urlsplit(origin).hostname)]
        first, last = (bisect_right(site.since, when) - 1 for when in (since, now))
        return all(
            phase.kind in ("file", "404", "410") and phase.latency <= 1.0
            for phase in site.phases[first : last + 1]
        )

    def resolve(self, host: str, now: float) -> None:
        """Raise what the resolver of the system raises for *host*."""
        if self.sites[host].phase(now).kind == "nohost":
            raise socket.gaierror(socket.EAI_NONAME, "no such host")
        raise socket.gaierror(socket.EAI_AGAIN, "the resolver failed")


_ERRORS: Mapping[str, type[Exception]] = {
    "refuse": ConnectionRefusedError,
    "reset": ConnectionResetError,
    "nohost": CannotResolveHostError,
    "dns": CannotResolveHostError,
}
_MIX: Mapping[str, float] = {
    "file": 50,
    "status": 12,
    "error": 12,
    "redirect": 6,
    "hang": 8,
    "refuse": 3,
    "reset": 3,
    "nohost": 2,
    "dns": 2,
}
_KINDS, _WEIGHTS = list(_MIX), list(_MIX.values())


def forbids(status: int, body: bytes, path: str) -> bool:
    """Return whether an answer for /robots.txt forbids *path*: by a reading of its own."""
    if status in (401, 403):
        return True
    if not 200 <= status <= 299:
        return False
    lines = body.decode().splitlines()
    closed = [line.removeprefix("Disallow: ") for line in lines if line.startswith("Disallow: ")]
    return any(path.startswith(prefix) for prefix in closed)


def delay_of(body: bytes) -> float:
    """Return the delay that a file asks for, 0 for none: by a reading of its own."""
    _, _, rest = body.decode().partition("Crawl-delay: ")
    return float(rest.partition("\n")[0] or 0)


def is_failure(status: int) -> bool:
    return status >= 500 or status == 429


def life_of(status: int, headers: Any, koster: Mapping[str, Any]) -> float:
    """Return how long a copy is fresh at most: by a reading of its own."""
    default = "KOSTER_RESTRICTED_EXPIRY_SECS" if status in (401, 403) else "KOSTER_EXPIRY_SECS"
    _, _, stated = (headers.get("Cache-Control") or b"").decode().partition("max-age=")
    life = float(stated) if stated else koster[default]
    least, most = koster["KOSTER_EXPIRY_MIN_SECS"], koster["KOSTER_EXPIRY_MAX_SECS"]
    return float(min(max(life, least if stated else 0.0), most))
