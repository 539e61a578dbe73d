"""docs/fleet.md word by word: three workers, a Redis user with those rights, database 1."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from harness import forks
from harness.documents import blocks, settings_of, text
from harness.redis_server import redis_server
from harness.replies import Reply
from harness.server import Server

PAGE = text("docs/fleet.md")
WORKERS = 3
SITES = 4
PAGES = 8
URL = "redis://koster:password@redis.example:6379/1"
START = '["https://example.com/", "https://example.org/"]'
HTML = {"Content-Type": "text/html"}


def replaced(block: str, old: str, new: str) -> str:
    assert old in block
    return block.replace(old, new)


@pytest.mark.beside("scrapy-redis")
def test_the_steps(tmp_path: Path) -> None:
    """Workers that share a queue obey, and fetch each robots.txt once."""
    storage, more, spider = blocks(PAGE, "python")
    settings = storage + more
    assert settings_of(settings)["REDIS_URL"] == URL
    with redis_server() as redis, redis.client(db=1) as admin, Server() as server:
        for rights in blocks(PAGE, "text"):
            admin.execute_command(*rights.split())
        sites = [server.site() for _ in range(SITES)]
        for site in sites:
            site.robots = Reply(200, "User-agent: *\nDisallow: /private\n", delay=0.3)
            links = "".join(f'<a href="/page{n}">x</a>' for n in range(PAGES))
            site.page("/", Reply(body=f'{links}<a href="/private">x</a>', headers=HTML))
        own_url = URL.replace("redis.example:6379", f"127.0.0.1:{redis.port}")
        project = tmp_path / "fleet_project"
        project.mkdir()
        (project / "__init__.py").write_text("")
        (project / "settings.py").write_text(
            f"{replaced(settings, URL, own_url)}\nSPIDER_MODULES = ['fleet_project.spiders']\n"
            f"TELNETCONSOLE_ENABLED = False\n"
        )
        starts = repr([site.url("/") for site in sites])
        (project / "spiders.py").write_text(replaced(spider, START, starts))
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = fleet_project.settings\n")
        command = ("-m", "scrapy", "crawl", "fleet")
        workers = [forks.start(*command, cwd=tmp_path) for _ in range(WORKERS)]
        logs = [worker.communicate(timeout=forks.ENDS_SECS)[1] for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * WORKERS, logs
        assert admin.acl_log() == []
        assert not any("Traceback" in log for log in logs), logs
        expected = Counter(["/", *(f"/page{n}" for n in range(PAGES))])
        for site in sites:
            assert Counter(site.pages_asked) == expected
            assert site.asked("/robots.txt") == 1
        keys = {key.decode().partition(":")[0] for key in admin.scan_iter()}
        assert keys == {"koster", "fleet"}
