"""Four workers crawl 20 sites out of one Redis. One is killed with kill -9 while requests wait.

Starts a redis-server, the sites and the workers, says what became of all, and stops what it
started. Exits with 1 where that is not what has to be.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

import redis

if TYPE_CHECKING:
    from collections.abc import Callable

SITES = 20
FAILING = 3
"""So many of the sites answer 503 to GET /robots.txt, until a worker has been killed."""
PAGES = 20
WORKERS = 4
BOUND_SECS = 120.0
RULES = b"User-agent: *\nDisallow: /private/\n"


class Sites:
    """The sites, a port each, and what they were asked for."""

    def __init__(self) -> None:
        self.asked: Counter[tuple[int, str]] = Counter()
        self.fail = True
        self._lock = Lock()
        self._servers = [self._server(number) for number in range(SITES)]
        self.ports = [server.server_port for server in self._servers]

    def _server(self, number: int) -> ThreadingHTTPServer:
        sites = self

        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with sites._lock:
                    sites.asked[number, self.path] += 1
                is_robots_txt = self.path == "/robots.txt"
                if is_robots_txt:
                    time.sleep(0.3)
                failing = is_robots_txt and number < FAILING and sites.fail
                body = RULES if is_robots_txt else b"page"
                self.send_response(503 if failing else 200)
                self.send_header("Content-Type", "text/plain")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        return server

    def urls(self) -> list[str]:
        """Pages of all sites by turns, one of each forbidden."""
        paths = [*(f"/page{number}" for number in range(PAGES)), "/private/1"]
        return [f"http://127.0.0.1:{port}{path}" for path in paths for port in self.ports]

    def pages(self, *, failing: bool) -> Counter[tuple[int, str]]:
        with self._lock:
            return Counter(
                {
                    (number, path): count
                    for (number, path), count in self.asked.items()
                    if path.startswith("/page") and (number < FAILING) is failing
                }
            )

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + BOUND_SECS
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"After {BOUND_SECS:g} s still not so: {what}.")
        time.sleep(0.1)


def worker(urls: Path, redis_url: str, log: Path) -> subprocess.Popen[bytes]:
    settings = {
        "REDIS_URL": redis_url,
        "KOSTER_REDIS_URL": redis_url,
        "KOSTER_DEFER_FIRST_SECS": 1,
        "KOSTER_DEFER_MAX_SECS": 2,
        "KOSTER_IDLE_LIMIT_SECS": BOUND_SECS,
        "LOG_LEVEL": "INFO",
        "LOG_FILE": log,
    }
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    command = [sys.executable, "-W", "ignore", "-m", "scrapy", "crawl", "fleet"]
    return subprocess.Popen([*command, "-a", f"urls={urls}", *options])


def parked(client: redis.Redis) -> int:
    """How many requests wait in Redis for their sites. A queue of scrapy-redis is a sorted set."""
    keys = list(client.scan_iter(match="*:koster:parked:*"))
    return sum(int(client.zcard(key)) for key in keys)


def has_deferred(log: Path) -> bool:
    """Whether requests wait in the worker of this log."""
    said = log.read_text(encoding="utf-8")
    return bool(re.search("Holding requests .* Waiting requests: [1-9]", said))


def crawl(sites: Sites, client: redis.Redis, redis_url: str, folder: Path) -> int:
    """Crawl, and kill a worker in which requests wait; return how many requests waited in Redis."""
    urls = folder / "urls"
    urls.write_text("\n".join(sites.urls()), encoding="utf-8")
    logs = [folder / f"worker{number}.log" for number in range(WORKERS)]
    for log in logs:
        log.touch()
    workers = [worker(urls, redis_url, log) for log in logs]
    try:
        healthy, waiting = (SITES - FAILING) * PAGES, FAILING * (PAGES + 1)
        until(lambda: len(sites.pages(failing=False)) == healthy, "the healthy sites are crawled")
        until(lambda: parked(client) == waiting, "what waits is in Redis")
        # Not the first: one that started late has met no site that fails.
        killed = next(each for each, log in zip(workers, logs, strict=True) if has_deferred(log))
        waited = parked(client)
        killed.kill()
        killed.wait()
        sites.fail = False
        others = [each for each in workers if each is not killed]
        for each in others:
            each.wait(timeout=BOUND_SECS)
        ended = [each.returncode for each in others]
        if any(ended):
            sys.exit(f"Workers ended with {ended}.")
        return waited
    finally:
        for each in workers:
            each.kill()
            each.wait()


def report(sites: Sites, waited: int) -> list[str]:
    """Print what became of it; return what is not as it has to be."""
    fetches = Counter({n: sites.asked[n, "/robots.txt"] for n in range(FAILING, SITES)})
    pages = sites.pages(failing=True) + sites.pages(failing=False)
    wanted = SITES * PAGES
    lost, twice = wanted - len(pages), sum(count > 1 for count in pages.values())
    forbidden = sum(count for (_, path), count in sites.asked.items() if "/private/" in path)
    rows = {
        "workers, of which one was killed": WORKERS,
        "requests that waited in Redis": waited,
        "robots.txt fetches a site (of those that did not fail)": fetches.total() / len(fetches),
        "pages": wanted,
        "pages lost": lost,
        "pages fetched twice": twice,
        "forbidden pages fetched": forbidden,
    }
    width = max(map(len, rows))
    print(*(f"  {name:{width}}  {value:g}" for name, value in rows.items()), sep="\n")
    ought = {"pages lost": 0, "pages fetched twice": 0, "forbidden pages fetched": 0}
    ought["robots.txt fetches a site (of those that did not fail)"] = 1
    found = [f"{name}: {rows[name]:g}" for name in ought if rows[name] != ought[name]]
    return found if waited else [*found, "no request waited in Redis"]


def main() -> int:
    server = os.environ.get("KOSTER_REDIS_SERVER") or shutil.which("redis-server")
    if server is None:
        print("The demo needs a Redis server: run make demo-fleet, or install redis-server")
        return 1
    os.chdir(Path(__file__).parent)
    port = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        quiet = ["--save", "", "--dir", name, "--logfile", str(folder / "log")]
        running = subprocess.Popen([server, "--bind", "127.0.0.1", "--port", str(port), *quiet])
        sites = Sites()
        try:
            with redis.Redis(port=port) as client:
                until(lambda: answers(client), "redis-server answers")
                print(f"{WORKERS} workers crawl {SITES} sites. This takes about a minute.")
                waited = crawl(sites, client, f"redis://127.0.0.1:{port}/0", folder)
        finally:
            sites.close()
            running.terminate()
            running.wait()
    found = report(sites, waited)
    if found:
        print("This is not as it should be:", *found, sep="\n  ")
        return 1
    print("Each site was asked once, nothing was lost, and nothing forbidden was fetched.")
    return 0


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


if __name__ == "__main__":
    sys.exit(main())
