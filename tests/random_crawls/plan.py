"""The plan of a crawl, drawn from a seed: sites, pages, spider, settings, and what happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

OPEN = ("rules", "none", "empty", "html", "redirect", "large")
DEAD = ("hang", "refuse", "reset", "busy", "challenge", "cut")
FOLDERS = ("a", "b", "no", "no/yes")
TIMEOUT_SECS = 5.0
RULES = (
    (),
    (("Disallow", "/no"),),
    (("Allow", "/no/yes"), ("Disallow", "/no")),
    (("Allow", "/a"), ("Disallow", "/")),
    (("Disallow", "/b"), ("Disallow", "/no/yes")),
    (("Disallow", "/"),),
)
"""The first rule that matches is the longest, too: all parsers read them alike."""
NO_OTHERS, ALL = RULES[1], RULES[5]
PARSERS = ("KosterRobotParser", "Rfc9309RobotParser", "StrictestRobotParser")
BESIDE = {"REPORT": "report.html", "ARCHIVE": "evidence", "USAGE_PURPOSES": ["train-ai"]}
"""Settings that change no request. They are drawn apart, so a seed has the crawl that it had."""
HANDLERS = {
    "asyncio": ("", "", "_aiohttp.Aiohttp", "_httpx.Httpx"),
    "none": ("_aiohttp.Aiohttp", "_httpx.Httpx"),
    "default": ("",),
}


@dataclass
class Site:
    """One host, and what it answers to /robots.txt: one of OPEN or DEAD, or "closed"."""

    number: int
    robots: str = "rules"
    rules: tuple[tuple[str, str], ...] = ()
    later: tuple[tuple[str, str], ...] | None = None
    """Its rules from the second answer on."""
    delay: float = 0.0
    secs: float = 0.0
    """How long its robots.txt takes."""
    fails: int = 0
    """How many attempts are answered 503 before that."""
    until_event: bool = False
    """Whether it fails up to the second run."""
    life: int = 0
    """The max-age of its robots.txt, 0 for none."""
    filler: int = 0
    """How many rules with wildcards follow, which match nothing."""

    def text(self, count: int) -> str:
        rules = self.rules if count == 1 or self.later is None else self.later
        lines = [f"User-agent: other{self.number}\nDisallow: /\n\nUser-agent: *"]
        lines += [f"{name}: {path}" for name, path in rules]
        lines += [f"Crawl-delay: {self.delay}"] if self.delay else []
        lines += [f"Disallow: /zz{n}*q*w{self.number}$" for n in range(self.filler)]
        lines += ["#" * 1_000] * 600 if self.robots == "large" else []
        return "\n".join([*lines, ""])

    def allows(self, folder: str) -> set[bool]:
        """Return whether pages in this folder may be fetched, by each of its files."""
        if self.robots not in OPEN:
            return {False}
        if self.robots not in {"rules", "redirect", "large"}:
            return {True}
        files = [self.rules] if self.later is None else [self.rules, self.later]
        path = f"/{folder}/"
        return {
            next((name == "Allow" for name, prefix in rules if path.startswith(prefix)), True)
            for rules in files
        }


@dataclass
class Page:
    """One page. The other pages that it names are given by their numbers."""

    site: int
    folder: str = "a"
    status: int = 200
    size: int = 500
    secs: float = 0.0
    fails: int = 0
    """How many requests for it are answered 503 before that."""
    links: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)
    """Links that are requested with dont_filter, too."""
    pictures: list[int] = field(default_factory=list)
    inner: list[int] = field(default_factory=list)
    """Pages that its callback downloads itself."""


@dataclass
class Run:
    """One start of the crawl."""

    workers: int = 1
    event: str = ""
    """What happens: "int", "int twice", "kill", "proxy dies", "disk is full"."""
    after: float = 0.0
    """How many seconds after the first page."""
    proxy: str = ""
    """ "alive" or "dead"."""
    wait: float = 0.0
    """How long after the last run it begins."""


@dataclass
class Plan:
    """All that a seed decides."""

    seed: int
    shape: str
    sites: list[Site] = field(default_factory=list)
    pages: list[Page] = field(default_factory=list)
    starts: list[tuple[int, float]] = field(default_factory=lambda: [(0, 0.0)])
    """Pages, and how long the spider sleeps before each."""
    idle: list[int] = field(default_factory=list)
    """Pages that a handler of spider_idle requests."""
    turned: list[tuple[int, int]] = field(default_factory=list)
    """Pages whose URL a later middleware replaces, and by which."""
    settings: dict[str, Any] = field(default_factory=dict)
    spider: str = "plain"
    reactor: str = "asyncio"
    storage: str = "sqlite"
    shared_queue: bool = False
    retries: bool = False
    """Whether the errback requests each page once more."""
    block: float = 0.0
    """How long every fifth item blocks the loop."""
    runs: list[Run] = field(default_factory=lambda: [Run()])
    megabytes: int = 0
    """How much memory a process may use, 0 for any."""

    @property
    def jobdir(self) -> bool:
        return "JOBDIR" in self.settings

    def redirects(self) -> Iterator[tuple[int, int]]:
        """Yield each page that redirects, and its target."""
        for number, page in enumerate(self.pages):
            if page.status == 302:
                yield number, page.links[0]

    def set(self, first: float, longest: float, limit: float, idle: float, **more: Any) -> None:
        """Set how long a site is deferred, and *more*."""
        names = ("DEFER_FIRST", "DEFER_MAX", "DEFER_LIMIT", "IDLE_LIMIT")
        values = (first, longest, limit, idle)
        self.settings |= {f"KOSTER_{name}_SECS": v for name, v in zip(names, values, strict=True)}
        self.settings |= more

    def extra(self, chance: Random, **given: Any) -> int:
        """Add a page that no other page links to."""
        page = Page(chance.randrange(len(self.sites)), chance.choice(FOLDERS))
        page.size = chance.choice((1, 500, 20_000, 200_000))
        vars(page).update(given)
        self.pages.append(page)
        return len(self.pages) - 1


def draw(seed: int) -> Plan:
    """Return the plan of this seed."""
    chance = Random(seed)
    [shape] = chance.choices(list(_SHAPES), [weight for weight, _ in _SHAPES.values()])
    plan = Plan(seed, shape)
    _draw_settings(plan, chance)
    _SHAPES[shape][1](plan, chance)
    if shape != "heavy":  # a report reads each file, with a time that no plan knows
        apart = Random(f"beside {seed}")
        plan.settings |= {f"KOSTER_{n}": v for n, v in BESIDE.items() if apart.random() < 0.3}
    return plan


def _draw_settings(plan: Plan, chance: Random) -> None:
    pick = chance.choice
    plan.reactor = pick(("asyncio", "asyncio", "asyncio", "default", "none"))
    plan.storage = pick(("sqlite", "sqlite", "memory", "redis"))
    waits = pick((0.3, 0.5, 1.0)), pick((1, 4, 600)), pick((3, 6, 300)), pick((1, 2, 4, 15))
    plan.set(*waits, KOSTER_PARSER=f"scrapy_koster.{pick(PARSERS)}", DOWNLOAD_TIMEOUT=15)
    plan.settings |= {"CONCURRENT_REQUESTS": pick((1, 2, 4, 8, 16, 16, 32))}
    plan.settings |= {"CONCURRENT_REQUESTS_PER_DOMAIN": pick((1, 8, 8, 16))}
    plan.settings |= {"KOSTER_TIMEOUT_SECS": TIMEOUT_SECS, "KOSTER_EXPIRY_MIN_SECS": 0}
    plan.settings |= {"KOSTER_CRAWL_DELAY": "obey"}
    if handler := pick(HANDLERS[plan.reactor]):
        path = f"scrapy.core.downloader.handlers.{handler}DownloadHandler"
        plan.settings["DOWNLOAD_HANDLERS"] = {"http": path}
    if chance.random() < 0.1:
        plan.settings["RETRY_ENABLED"] = False


def _draw_sites(plan: Plan, chance: Random, count: int, failing: float = 0.25) -> None:
    """Draw so many sites. The crawl begins at the first."""
    plan.sites = [Site(0, rules=NO_OTHERS)]
    for number in range(1, count):
        site = Site(number, chance.choice((*["rules"] * 6, *OPEN)), chance.choice(RULES))
        if chance.random() < failing:
            site.robots = chance.choice((*DEAD, "busy", "closed", "rules"))
            site.fails = chance.choice((1, 2, 3)) if site.robots == "rules" else 0
        if site.robots in OPEN:
            site.secs = chance.choice((0, 0, 0, 0.1, 0.3, 1.0))
        if site.robots == "rules" and chance.random() < 0.25:
            site.life, site.later = 1, chance.choice((None, *RULES))
        plan.sites.append(site)


def _draw_pages(plan: Plan, chance: Random, count: int, begin: int = 1) -> None:
    """Draw a tree of pages, and some more links."""
    plan.starts = [(number, 0.0) for number in range(begin)]
    plan.pages = [Page(0) for _ in range(begin)]
    for number in range(begin, count):
        page = Page(chance.randrange(len(plan.sites)), chance.choice(FOLDERS))
        page.size = chance.choice((1, 1, 500, 3_000))
        page.secs = chance.choice((0, 0, 0, 0, 0.1, 0.3, 1.0))
        page.status = chance.choice((*[200] * 12, 404, 500))
        page.fails = chance.choice((*[0] * 10, 1, 2))
        plan.pages[chance.randrange(max(begin, number // 3))].links.append(number)
        plan.pages.append(page)
    for page in plan.pages[begin:]:
        if page.links and chance.random() < 0.1:
            page.links, page.status = page.links[:1], 302
        elif page.status == 200:
            page.links += chance.sample(range(1, count), 2)
            page.links = list(dict.fromkeys(page.links))


def _link_all(plan: Plan) -> None:
    plan.pages[0].links = list(range(1, len(plan.pages)))


def _delay(site: Site, secs: float) -> None:
    if site.robots == "rules":
        site.delay, site.later, site.life = secs, None, 0


def _mixed(plan: Plan, chance: Random) -> None:
    """Anything beside anything."""
    _draw_sites(plan, chance, chance.choice((2, 3, 5, 8, 15)))
    _draw_pages(plan, chance, chance.choice((10, 20, 40, 80)), begin=chance.choice((1, 1, 4)))
    plan.spider = chance.choice(("plain", "plain", "crawl", "sitemap"))
    plan.retries = chance.random() < 0.2
    plan.block = chance.choice((0, 0, 0, 0.5, 2.0))
    if chance.random() < 0.3:
        plan.starts = [(each, chance.choice((0, 0.1, 0.5))) for each, _ in plan.starts]
    if chance.random() < 0.1:
        plan.settings |= {"AUTOTHROTTLE_ENABLED": True, "AUTOTHROTTLE_START_DELAY": 0.1}
        plan.settings["AUTOTHROTTLE_MAX_DELAY"] = 0.3
    if chance.random() < 0.1:
        plan.settings["DOWNLOAD_DELAY"] = 0.1
    if plan.spider == "plain":
        _draw_inner(plan, chance)
    if chance.random() < 0.3:
        plan.idle = [plan.extra(chance) for _ in range(2)]
    if chance.random() < 0.2:
        for site in chance.sample(plan.sites, len(plan.sites) // 2):
            _delay(site, chance.choice((0.3, 0.5, 1.0)))
        plan.settings["CONCURRENT_REQUESTS"] = max(8, plan.settings["CONCURRENT_REQUESTS"])
    _CASES[chance.randrange(len(_CASES))](plan, chance)


def _draw_inner(plan: Plan, chance: Random) -> None:
    """Draw links that are not filtered, downloads in callbacks, and pictures."""
    for number, page in enumerate(list(plan.pages)):
        if page.status != 200:
            continue
        if page.links and chance.random() < 0.1:
            # Towards later pages only: a circle of links that are not filtered has no end.
            page.again = [link for link in [chance.choice(page.links)] if link > number]
        if chance.random() < 0.1:
            page.inner = [plan.extra(chance)]
        if chance.random() < 0.2:
            page.pictures = [plan.extra(chance)]


def _jobdir(plan: Plan, chance: Random) -> None:
    plan.settings["JOBDIR"] = "job"


def _cached(plan: Plan, chance: Random) -> None:
    """The HTTP cache has the pages of the second run, and of each page the first answer."""
    plan.settings |= {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": "pages"}
    plan.runs = [Run(), Run()]
    for page in plan.pages:
        page.fails = 0


def _again(plan: Plan, chance: Random) -> None:
    plan.runs = [Run(), Run()]


def _full(plan: Plan, chance: Random) -> None:
    plan.storage = "sqlite"
    limit = "KOSTER_DEFER_LIMIT_SECS"  # for so long no host with a delay is visited
    plan.settings[limit] = min(plan.settings[limit], 6)
    plan.runs = [Run(event="disk is full", after=chance.choice((0.0, 0.3)))]
    for page in plan.pages:
        page.pictures = []


def _turned(plan: Plan, chance: Random) -> None:
    """A later middleware replaces URLs by those of a site that forbids all."""
    plan.sites.append(Site(len(plan.sites), rules=ALL))
    plan.turned = [(each, plan.extra(chance, site=len(plan.sites) - 1)) for each in (1, 2, 3)]


def _plain(plan: Plan, chance: Random) -> None:
    """Nothing else."""


_CASES = (_jobdir, _cached, _again, _full, _turned, _plain, _plain, _plain)


def _pictures(plan: Plan, chance: Random) -> None:
    """Large pages with pictures, some on a host that fails."""
    failing = chance.choice(("busy", "busy", "hang", "reset", "refuse", "challenge"))
    plan.sites = [Site(0), Site(1, failing), Site(2)]
    plan.pages = [Page(0)]
    for number in range(chance.choice((60, 90))):
        pictured = 1 if number % chance.choice((1, 1, 2)) == 0 else 2
        picture = plan.extra(chance, site=pictured, size=1_000)
        size = chance.choice((200_000, 200_000, 200_000, 1))
        each = plan.extra(chance, site=0, size=size, pictures=[picture])
        plan.pages[0].links.append(each)
    plan.set(chance.choice((0.5, 10)), 600, 300, 15, CONCURRENT_REQUESTS=chance.choice((8, 16)))
    plan.settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = 16


def _room(plan: Plan, chance: Random) -> None:
    """More sites than the memory has room for."""
    count = chance.choice((30, 45, 60))
    _draw_sites(plan, chance, count, failing=chance.choice((0, 0, 0.1)))
    _draw_pages(plan, chance, count * chance.choice((3, 4)))
    _link_all(plan)
    delay = chance.choice((0, 0, 0.5))
    for site in plan.sites:
        site.secs, site.life, site.later = 0.2, 0, None
        _delay(site, delay)
    for page in plan.pages:
        page.secs = 0.2
    room = count // chance.choice((3, 6, 10))
    plan.storage = chance.choice(("memory", "sqlite"))
    plan.settings |= {"KOSTER_MEMORY_SITES": room, "KOSTER_MEMORY_BYTES": room * 200}
    plan.settings["CONCURRENT_REQUESTS"] = chance.choice((8, 16))


def _outage(plan: Plan, chance: Random) -> None:
    """A proxy that is dead or dies, and a run with a proxy that works."""
    _draw_sites(plan, chance, chance.choice((2, 5, 10)), failing=0)
    _draw_pages(plan, chance, 20, begin=5)
    for number, page in enumerate(plan.pages[:5]):
        page.site, page.folder = number % len(plan.sites), "a"
    plan.storage = chance.choice(("sqlite", "redis"))
    plan.set(chance.choice((1, 60)), 600, 300, 2)
    first = chance.choice((Run(proxy="dead"), Run(1, "proxy dies", 0.2, proxy="alive")))
    plan.runs = [first, Run(proxy="alive")]


def _closing(plan: Plan, chance: Random) -> None:
    """A signal in the middle of the crawl, while a page takes long, and the run after it."""
    _draw_sites(plan, chance, chance.choice((3, 6)), failing=0.4)
    plan.sites.append(Site(len(plan.sites), "busy"))
    _draw_pages(plan, chance, chance.choice((20, 40)))
    failing = [plan.extra(chance, site=len(plan.sites) - 1) for _ in range(3)]
    slow = plan.extra(chance, site=0, folder="a", secs=chance.choice((1.0, 6.0, 6.0)))
    plan.pages[0].links += [slow, *failing]
    plan.set(0.3, 1, 300, 4, CONCURRENT_REQUESTS=16)
    plan.runs = [Run(1, chance.choice(("int", "int", "int twice")), 1.5)]
    if chance.random() < 0.6:
        plan.settings["JOBDIR"] = "job"
        plan.runs.append(Run())


def _resume(plan: Plan, chance: Random) -> None:
    """Sites that fail in the first run, which is killed; or ends, and one fails for ever."""
    _draw_sites(plan, chance, 3, failing=0)
    plan.sites += [Site(3, until_event=True), Site(4, until_event=True)]
    if is_killed := chance.random() < 0.5:
        plan.runs = [Run(1, "kill", 3.0), Run()]
    else:
        plan.sites.append(Site(5, "busy"))
        plan.runs = [Run(), Run(wait=12)]
    plan.pages = [Page(each % len(plan.sites)) for each in range(30)]
    plan.starts = [(each, 0.0) for each in range(30)]
    plan.set(0.5, 1, 60 if is_killed else 12, 2, JOBDIR="job", CONCURRENT_REQUESTS=16)


def _fleet(plan: Plan, chance: Random) -> None:
    """Two or three processes on one storage, hosts with a delay, loops that block."""
    plan.storage = chance.choice(("sqlite", "redis", "redis"))
    plan.shared_queue = plan.storage == "redis" and chance.random() < 0.5
    count = chance.choice((4, 20, 40))
    _draw_sites(plan, chance, count, failing=chance.choice((0, 0.2)))
    _draw_pages(plan, chance, count * (2 if count > 4 else 4))
    _link_all(plan)
    for site in plan.sites:
        site.secs = min(site.secs, 0.1)
        _delay(site, 1.0 if count > 4 else chance.choice((0.5, 1.0)))
    for page in plan.pages:
        page.secs, page.fails = min(page.secs, 0.1), 0
    plan.block = 0.0 if count > 4 else chance.choice((0.5, 1.0, 2.0))
    plan.settings["CONCURRENT_REQUESTS"] = chance.choice((4, 4, 16))
    plan.runs = [Run(workers=chance.choice((2, 3)))]


def _flood(plan: Plan, chance: Random) -> None:
    """Many new sites at once, and a small CONCURRENT_REQUESTS."""
    _draw_sites(plan, chance, 60, failing=0.1)
    _draw_pages(plan, chance, 80)
    _link_all(plan)
    for site in plan.sites:
        site.secs = 0.3
    plan.settings["CONCURRENT_REQUESTS"] = chance.choice((1, 2, 4))


def _heavy(plan: Plan, chance: Random) -> None:
    """Large files of wildcards, more than should stay in memory."""
    plan.sites = [Site(each, filler=20_000 if each else 0) for each in range(24)]
    _draw_pages(plan, chance, 48)
    _link_all(plan)
    plan.megabytes = 300


_SHAPES = {
    "mixed": (36, _mixed),
    "pictures": (9, _pictures),
    "room": (9, _room),
    "outage": (9, _outage),
    "closing": (11, _closing),
    "resume": (8, _resume),
    "fleet": (13, _fleet),
    "flood": (3, _flood),
    "heavy": (2, _heavy),
}
