"""Logs of robots whose sins are known, and what an audit has to find: an oracle.

It shares no code with the auditor but the parsers of the protocol, and takes its time: each
request is held against each file that its robot may have gone by.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import cache
from random import Random
from typing import TypeAlias

from scrapy_koster.protocol.reading import Reading, Rfc9309, RobotsTxt

HOST = "www.fict.org"
DAY = 86400
BEGAN = 1_795_000_000
"""When the first line of the log is from, in seconds since the epoch."""
CHANGED = BEGAN + 20 * DAY
"""When the second file took the place of the first one."""
ENDED = BEGAN + 40 * DAY

FIRST = b"""\
User-agent: namedbot
User-agent: otherbot
Disallow: /named/

User-agent: *
Crawl-delay: 10
Disallow: /private/
Allow: /old/open
Disallow: /old/
Disallow: /*.gif$
Allow: /both/x
Disallow: /both/
"""
SECOND = FIRST.replace(b"Disallow: /old/\n", b"Disallow: /old/\nDisallow: /new/\n")
GRACE_SECS = {"draft": 7 * DAY, "rfc9309": DAY}
READERS: Mapping[str, type[Reading]] = {"draft": RobotsTxt, "rfc9309": Rfc9309}


@dataclass(frozen=True)
class Hit:
    """One line of a log."""

    secs: int
    agent: str
    target: str
    status: int = 200
    client: str = "192.0.2.1"
    method: str = "GET"
    size: int = 1234
    host: str = HOST

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.secs, timezone.utc)

    @property
    def request(self) -> str:
        return f"{self.method} {self.target} HTTP/1.1"


@dataclass
class Sinner:
    """A robot, by its name token, and all that it did."""

    name: str
    agent: str
    hits: list[Hit] = field(default_factory=list)
    is_accused: bool = True
    """Whether it is a robot at all."""

    def get(self, secs: int, target: str, **more: object) -> None:
        self.hits.append(replace(Hit(secs, self.agent, target), **more))  # type: ignore[arg-type]

    def ask(self, secs: int, status: int = 200) -> None:
        self.get(secs, "/robots.txt", status=status)


Line: TypeAlias = tuple[int, str]

PATHS = ("/", "/page/1", "/old/open/x", "/both/x", "/about?private/")


def sinners(seed: int = 1) -> list[Sinner]:
    """Make fifty robots, five of each kind of sin, and three browsers."""
    chance = Random(seed)
    made: list[Sinner] = []

    def new(name: str, agent: str = "") -> Sinner:
        robot = Sinner(name, agent or f"{name}/1.{len(made)} (+http://{name}.example/)")
        made.append(robot)
        return robot

    def visits(robot: Sinner, start: int, end: int, targets: Sequence[str], count: int) -> None:
        for secs in sorted(chance.randrange(start, end) for _ in range(count)):
            client = f"198.51.{len(made)}.{chance.randrange(256)}"
            robot.get(secs, chance.choice(targets), client=client)

    for n in range(5):
        obedient = new(f"goodbot{n}")
        for week in range(0, 40, 5):
            obedient.ask(BEGAN + week * DAY + n)
        visits(obedient, BEGAN + 10, ENDED, PATHS, 30)

        one_line = new(f"linebot{n}")
        one_line.ask(BEGAN + n)
        visits(one_line, BEGAN + 100, BEGAN + DAY, [f"/private/{n}", *PATHS], 40)

        old_copy = new(f"gracebot{n}")
        old_copy.ask(CHANGED - 3 * DAY + n)
        visits(old_copy, CHANGED - 2 * DAY, CHANGED + 3 * DAY, ["/new/1", *PATHS], 30)
        old_copy.ask(CHANGED + 4 * DAY)
        visits(old_copy, CHANGED + 4 * DAY + 1, ENDED, PATHS, 20)

        stale = new(f"stalebot{n}")
        stale.ask(CHANGED - 2 * DAY - n)
        visits(stale, CHANGED - DAY, CHANGED + 9 * DAY, ["/new/1", "/new/2"], 60)

        fetched = new(f"knewbot{n}")
        fetched.ask(BEGAN + n)
        fetched.ask(CHANGED + 3600)
        visits(fetched, CHANGED - DAY, CHANGED + DAY, ["/new/1", "/page/1", "/old/2"], 60)

        never = new(f"neverbot{n}" if n else "otherbot")
        visits(never, BEGAN, ENDED, ["/private/1", "/named/2", "/new/3", "/x.gif", *PATHS], 80)

        after = new(f"afterbot{n}")
        visits(after, BEGAN + DAY, BEGAN + 2 * DAY, ["/old/1", "/both/1", *PATHS], 30)
        after.ask(BEGAN + 2 * DAY)
        visits(after, BEGAN + 2 * DAY + 1, BEGAN + 3 * DAY, PATHS, 20)

        fast = new(f"fastbot{n}")
        fast.ask(BEGAN + 5 * DAY)
        visits(fast, BEGAN + 5 * DAY + 1, BEGAN + 5 * DAY + 60, PATHS, 300)

        spoofed = new(
            f"fakebot{n}", f"Mozilla/5.0 (compatible; FakeBot{n}/2.0; +http://fake.example)"
        )
        spoofed.ask(BEGAN + DAY, status=404 if n == 1 else 503 if n == 2 else 304)
        visits(spoofed, BEGAN + DAY, BEGAN + 12 * DAY, ["/private/2", "/both/y", *PATHS], 60)

        # Known by nothing but that it asked; the name token is not that of a robot.
        plain = new(f"fetch-{'abcde'[n]}", f"Fetch-{'abcde'[n]}/0.{n}")
        visits(plain, BEGAN + DAY, BEGAN + 3 * DAY, ["/both/1", "/a.gif", "/both/x"], 25)
        plain.ask(BEGAN + 2 * DAY, status=200)
        plain.get(BEGAN + 2 * DAY, "/robots.txt", method="HEAD")
    for n in range(3):
        browser = new(
            f"browser{n}",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
            f" Chrome/{120 + n}.0.0.0 Safari/537.36",
        )
        browser.is_accused = False
        visits(browser, BEGAN, ENDED, ["/private/1", "/robots.txt", *PATHS], 100)
    made[0].get(BEGAN, "/")  # the first line of all
    for robot in made:
        robot.hits.sort(key=lambda hit: hit.secs)
    return made


def log_of(robots: Iterable[Sinner]) -> list[Hit]:
    """Return all that they did, in order."""
    return sorted((hit for robot in robots for hit in robot.hits), key=lambda hit: hit.secs)


# What is true.


@cache
def _ruling(reading: str, body: bytes, name: str, target: str) -> tuple[bool, Line]:
    ruling = READERS[reading](body).ruling(f"http://{HOST}{target}", name)
    if ruling.rule is None:
        return ruling.allowed, (0, "")
    return ruling.allowed, (ruling.rule.number, f"Disallow: {ruling.rule.value.decode()}")


def _held(secs: float) -> bytes:
    return SECOND if secs >= CHANGED else FIRST


def _copies(earlier: Sequence[Hit], secs: int, grace: int, began: int) -> list[bytes | None]:
    """The files that the robot may take for the one that holds; None: it was told of none."""
    fetches = [
        hit
        for hit in earlier
        if hit.target == "/robots.txt" and hit.method == "GET" and hit.status in (200, 304, 404)
    ]
    if fetches:
        last = fetches[-1]
        if secs >= last.secs + grace:
            return []
        return [None if last.status == 404 else _held(last.secs)]
    # Before the log began it may have fetched what held then, if that is fresh still.
    if secs - grace > began:
        return []
    return [_held(at) for at in (began, max(secs - grace, 0))]


@dataclass
class Truth:
    lines: Counter[Line] = field(default_factory=Counter)
    """How many requests disobeyed each line, of the file that held."""
    excused: int = 0


def truth_of(robot: Sinner, reading: str, began: int = BEGAN) -> Truth:
    """Judge each request by itself. The log began at *began*."""
    truth = Truth()
    for n, hit in enumerate(robot.hits):
        if hit.target == "/robots.txt":
            continue
        allowed, line = _ruling(reading, _held(hit.secs), robot.name, hit.target)
        if allowed:
            continue
        copies = _copies(robot.hits[:n], hit.secs, GRACE_SECS[reading], began)
        if all(
            copy is not None and not _ruling(reading, copy, robot.name, hit.target)[0]
            for copy in copies
        ):
            truth.lines[line] += 1
        else:
            truth.excused += 1
    return truth


# How logs look.


def _common(hit: Hit) -> str:
    when = hit.time.strftime("%d/%b/%Y:%H:%M:%S +0000")
    return f'{hit.client} - - [{when}] "{hit.request}" {hit.status} {hit.size}'


def _combined(hit: Hit) -> str:
    return f'{_common(hit)} "http://{HOST}/" "{hit.agent}"'


def _caddy(hit: Hit) -> str:
    request = {
        "remote_ip": hit.client,
        "client_ip": hit.client,
        "proto": "HTTP/2.0",
        "method": hit.method,
        "host": hit.host,
        "uri": hit.target,
        "headers": {"Accept": ["*/*"], "User-Agent": [hit.agent]},
    }
    found = {"level": "info", "ts": hit.secs + 0.25, "request": request, "bytes_read": 0}
    return json.dumps({**found, "size": hit.size, "status": hit.status, "resp_headers": {}})


def _nginx_json(hit: Hit) -> str:
    return json.dumps(
        {
            "time_iso8601": hit.time.isoformat(),
            "remote_addr": hit.client,
            "request": hit.request,
            "status": str(hit.status),
            "body_bytes_sent": str(hit.size),
            "http_user_agent": hit.agent,
            "host": hit.host,
        }
    )


def _cloudflare(hit: Hit) -> str:
    return json.dumps(
        {
            "ClientIP": hit.client,
            "ClientRequestHost": hit.host,
            "ClientRequestMethod": hit.method,
            "ClientRequestURI": hit.target,
            "ClientRequestUserAgent": hit.agent,
            "EdgeResponseBytes": hit.size,
            "EdgeResponseStatus": hit.status,
            "EdgeStartTimestamp": hit.time.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )


NGINX = (
    '$remote_addr|$msec|$host|"$request"|$status|$body_bytes_sent|$request_time|"$http_user_agent"'
)


def _nginx(hit: Hit) -> str:
    return (
        f'{hit.client}|{hit.secs}.125|{hit.host}|"{hit.request}"|{hit.status}|{hit.size}|0.001|'
        f'"{hit.agent}"'
    )


FORMATS: Mapping[str, Callable[[Hit], str]] = {
    "combined": _combined,
    "vhost": lambda hit: f"{hit.host}:80 {_combined(hit)}",
    "nginx": _nginx,
    "caddy": _caddy,
    "nginx-json": _nginx_json,
    "cloudflare": _cloudflare,
    "common": _common,
}


def written(hits: Iterable[Hit], name: str = "combined") -> bytes:
    """Return a log in one of FORMATS."""
    return "".join(f"{FORMATS[name](hit)}\n" for hit in hits).encode("utf-8", "surrogateescape")
