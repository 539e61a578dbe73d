"""Logs that web servers and proxies write themselves, in their default formats, and their audits.

wget and a crawl of ours obey, curl and another crawl do not. A guest takes the server for a proxy,
and asks for a page of another site, with the path that we forbid.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from harness.commands import Robots
from harness.crawling import Crawl
from harness.server import Server

from ecosystem.obeying import RULES, html
from ecosystem.running import need, run, running

PAGES = ("/", "/open", "/private/page")
AS_ROOT = os.geteuid() == 0
OTHER = "http://other.example"
LINKS = '<a href="/open">open</a> <a href="/private/page">private</a>'
FIGTREE = "FigTree/0.1 (+https://figtree.example/bot)"
CLIENTS = {"wget": "127.0.1.1", "curl": "127.0.2.1", "figtree": "127.0.3.1", "rudebot": "127.0.4.1"}

NGINX = """
daemon off; $user pid $folder/pid; error_log $folder/error.log;
events {}
http {
    client_body_temp_path $folder/1; proxy_temp_path $folder/2; fastcgi_temp_path $folder/3;
    uwsgi_temp_path $folder/4; scgi_temp_path $folder/5;
    access_log $folder/access.log;
    server { listen 127.0.0.1:$port; root $folder/site; try_files $$uri $$uri/index.html =404; }
}
"""
APACHE = r"""
ServerRoot /etc/apache2
ServerName 127.0.0.1:$port
Listen 127.0.0.1:$port
PidFile $folder/pid
ErrorLog $folder/error.log
$user
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
DocumentRoot $folder/site
# Debian's own line.
LogFormat "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"" vhost_combined
CustomLog $folder/access.log vhost_combined
"""
CADDY = """
{
    admin off
    auto_https off
}
http://:$port {
    bind 127.0.0.1
    root * $folder/site
    file_server
    log {
        output file $folder/access.log
    }
}
"""
HAPROXY = """
global
    log stdout format rfc3164 local0
    log-send-hostname
defaults
    log global
    mode http
    option httplog
    option dontlognull
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend web
    bind 127.0.0.1:$port
    $format
    default_backend site
backend site
    server origin $origin
"""
CAPTURED = "capture request header Host len 64\n    capture request header User-Agent len 128"
SQUID = """
http_port 127.0.0.1:$port accel vhost
cache_peer $host parent $origin_port 0 no-query originserver
http_access allow all
access_log stdio:$folder/access.log
cache_log $folder/error.log
pid_filename $folder/pid
coredump_dir $folder
shutdown_lifetime 1 seconds
"""


@dataclass(frozen=True)
class Kind:
    """A server as Debian has it."""

    package: str
    command: str
    config: str = ""
    user: str = ""
    format: str = ""
    hosts: tuple[str, ...] = ("127.0.0.1:$port", "other.example")
    """Hosts that the log names. A server that names none still has the absolute request line."""
    has_agents: bool = True
    """Whether the log has the User-Agent header. Without it, a robot is named after its network."""


OTHERS = ("other.example",)
KINDS = {
    "nginx": Kind("nginx", "nginx -c $folder/config", NGINX, "user root;", hosts=OTHERS),
    "Apache vhost_combined": Kind(
        "apache2", "apache2 -X -f $folder/config", APACHE,
        "User www-data\nGroup www-data",
    ),
    "Caddy": Kind("caddy", "caddy run --config $folder/config --adapter caddyfile", CADDY),
    "HAProxy": Kind(
        "haproxy", "haproxy -db -f $folder/config", HAPROXY, hosts=OTHERS, has_agents=False
    ),
    "HAProxy, captured": Kind(
        "haproxy", "haproxy -db -f $folder/config", HAPROXY, format=CAPTURED
    ),
    "Squid": Kind("squid", "squid -N -f $folder/config", SQUID, has_agents=False),
}  # fmt: skip


async def visited(crawl: Crawl, site: str, folder: Path) -> None:
    """All clients come."""
    run(
        "wget", "--recursive", "--level=1", f"--bind-address={CLIENTS['wget']}",
        f"--directory-prefix={folder}/wget", "--tries=1", "--no-verbose", f"{site}/",
    )  # fmt: skip
    curl = ("curl", "--silent", "--show-error", "--interface", CLIENTS["curl"])
    run(*curl, f"{site}/private/page")
    run(*curl, "--user-agent", "GuestBot/1.0", "--proxy", site, f"{OTHER}/private/page")
    urls = [f"{site}{path}" for path in PAGES]
    for robots, agent, name in (("koster", FIGTREE, "figtree"), (None, "RudeBot/1.0", "rudebot")):
        settings = {"USER_AGENT": agent, "DOWNLOAD_BIND_ADDRESS": CLIENTS[name]}
        result = await crawl(urls=urls, settings=settings, robots=robots)
        assert len(result.fetched) == (2 if robots else 3)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Of the server. One that was started as root has another user, who reads and writes here."""
    with TemporaryDirectory(prefix="koster-server-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "site/private").mkdir(parents=True)
        for path, text in (("index.html", LINKS), ("open", "open"), ("private/page", "private")):
            (folder / "site" / path).write_text(text)
        (folder / "site/robots.txt").write_text(RULES)
        yield folder


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_the_log_of_a_server(  # noqa: PLR0917  # its fixtures
    kind: Kind, crawl: Crawl, server: Server, robots: Robots, folder: Path, tmp_path: Path
) -> None:
    for program in ("curl", "wget"):
        need(program, f"apt-get install {program}")
    program = need(kind.command.split()[0], f"apt-get install {kind.package}")
    origin, free = server.site(), server.down()
    for path, page in (("/", LINKS), ("/open", "open"), ("/private/page", "private")):
        origin.page(path, html(page))
    origin.robots = RULES
    names = {
        "folder": str(folder), "port": str(free.port), "origin": origin.authority,
        "host": origin.host, "origin_port": str(origin.port), "format": kind.format,
        "user": kind.user if AS_ROOT else "",
    }  # fmt: skip
    (folder / "config").write_text(Template(kind.config).substitute(names))
    command = [program, *Template(kind.command).substitute(names).split()[1:]]
    log = folder / ("stdout" if kind.package == "haproxy" else "access.log")
    with running(command, folder, free.port):
        await visited(crawl, free.url(""), folder)
    (tmp_path / "robots.txt").write_text(RULES)
    ours, of_other, of_none = (
        robots("audit", "--robots", "robots.txt", "--json", "--site", site, log)
        for site in (free.url(), OTHER, "http://none.example")
    )
    [found] = ours.objects
    hosts = [Template(host).substitute(names) for host in kind.hosts]
    assert (found["unread"], found["elsewhere"], found["hosts"]) == (0, 1, hosts)
    if kind.has_agents:
        assert judged(found) == {
            "wget": (3, 1, 0), "figtree": (3, 1, 0), "curl": (1, 0, 1), "rudebot": (3, 0, 1),
        }  # fmt: skip
        assert (ours.status, found["nameless"]) == (1, 0)
        assert judged(of_other.objects[0])["guestbot"] == (1, 0, 1)
    else:
        # A client without a name becomes a robot when it fetches robots.txt. wget gets / before.
        assert judged(found) == {"client 127.0.1.0/24": (2, 1, 0), "client 127.0.3.0/24": (3, 1, 0)}
        assert ours.status == 0
    if kind.hosts != OTHERS:
        assert (of_none.status, f"The log is of {', '.join(hosts)}" in of_none.err) == (3, True)


def judged(found: dict[str, Any]) -> dict[str, tuple[int, int, int]]:
    """The requests, those for robots.txt, and the violations of each robot."""
    return {
        robot["name"]: (robot["requests"], robot["robots_txt_requests"], robot["violations"])
        for robot in found["robots"]
    }
