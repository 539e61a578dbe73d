"""Logs of load balancers, clouds and proxies, with the same two lines of a robot."""

# ruff: noqa: E501  # a line of a log is a line

from __future__ import annotations

import json
from typing import Any

import pytest
from harness.audit_logs import FIRST
from harness.audits import audited

from scrapy_koster.audit.judging import Version
from scrapy_koster.audit.textlines import COMMON, NAMED
from scrapy_koster.protocol.site import site_of

ONE = (Version("robots.txt", float("-inf"), FIRST),)
AGENT = "rudebot/1.0 (+http://rude.example)"


def traefik(path: str, status: int) -> dict[str, Any]:
    return {
        "ClientAddr": "192.0.2.7:51000", "ClientHost": "192.0.2.7", "ClientPort": "51000",
        "DownstreamContentSize": 12, "DownstreamStatus": status, "Duration": 1200,
        "RequestAddr": "www.fict.org", "RequestHost": "www.fict.org", "RequestMethod": "GET",
        "RequestPath": path, "RequestProtocol": "HTTP/1.1", "RouterName": "web@docker",
        "StartLocal": "2026-11-18T12:06:40.1+01:00", "StartUTC": "2026-11-18T11:06:40.123456789Z",
        "level": "info", "msg": "", "request_User-Agent": AGENT, "time": "2026-11-18T11:06:41Z",
    }  # fmt: skip


def google(path: str, status: int) -> dict[str, Any]:
    return {
        "httpRequest": {
            "latency": "0.1s", "remoteIp": "192.0.2.7", "requestMethod": "GET", "requestSize": "1",
            "requestUrl": f"https://www.fict.org{path}", "responseSize": "12", "status": status,
            "userAgent": AGENT,
        },
        "insertId": "x", "resource": {"type": "http_load_balancer"}, "severity": "INFO",
        "timestamp": "2026-11-18T11:06:40.123456Z",
    }  # fmt: skip


def as_lines(*objects: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in objects)


def balancer(start: str, url: str, status: int) -> str:
    return (
        f"{start}192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 {status} 200 0 12"
        f' "GET {url} HTTP/1.1" "{AGENT}" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws "Root=1-5" "-"\n'
    )


IIS = f"""\
#Software: Microsoft Internet Information Services 10.0\r
#Version: 1.0\r
#Date: 2026-11-18 11:00:00\r
#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port c-ip cs(User-Agent) sc-status sc-bytes\r
2026-11-18 11:06:40 10.0.0.1 GET /private/1 a=b 443 192.0.2.7 {AGENT.replace(" ", "+")} 200 12\r
#Software: Microsoft Internet Information Services 10.0\r
#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query cs(User-Agent) sc-status sc-bytes cs-host\r
2026-11-18 11:06:40 192.0.2.7 GET /private/2 - {AGENT.replace(" ", "+")} 404 12 www.fict.org\r
"""
CLOUDFRONT = (
    "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem"
    " sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-host-header\n"
) + "".join(
    "\t".join(
        ("2026-11-18", "11:06:40", "LAX1", "12", "192.0.2.7", "GET", "d1.cloudfront.net", path,
         "200", "-", AGENT.replace(" ", "%20"), query, "-", "www.fict.org")
    ) + "\n"
    for path, query in (("/private/1", "a=b"), ("/private/2", "-"))
)  # fmt: skip
LOGS = {
    "Traefik": as_lines(traefik("/private/1?a=b", 200), traefik("/private/2", 404)),
    "GCP": as_lines(google("/private/1?a=b", 200), google("/private/2", 404)),
    "CloudFront": CLOUDFRONT.encode(),
    "ALB": (
        balancer("https 2026-11-18T11:06:40.186641Z app/lb/5 ", "https://www.fict.org:443/private/1?a=b", 200)
        + balancer("http 2026-11-18T11:06:40.286641Z app/lb/5 ", "http://www.fict.org:80/private/2", 404)
    ).encode(),
    "classic ELB": (
        balancer("2026-11-18T11:06:40.186641Z lb ", "http://www.fict.org:80/private/1?a=b", 200)
        + balancer("2026-11-18T11:06:40.286641Z lb ", "http://www.fict.org:80/private/2", 404)
    ).encode(),
    "IIS": IIS.encode("utf-8-sig"),
    "HAProxy": "".join(
        f'{start}192.0.2.7:33317 [18/Nov/2026:11:06:40.655] http-in~ static/srv1 10/0/30/69/+109 {status} +12'
        f' - - ---- 1/1/1/1/+2 0/0 {{{captured}}} {{nginx}} "GET {path} HTTP/1.1"\n'
        for start, captured, path, status in (
            ("Nov  8 11:06:40 lb haproxy[14389]: ", f"www.fict.org|{AGENT}|-", "/private/1?a=b", 200),
            ("", AGENT, "http://www.fict.org/private/2", 404),
        )
    ).encode(),
    "lighttpd": (
        f'192.0.2.7 www.fict.org - [18/Nov/2026:11:06:40 +0000] "GET /private/1?a=b HTTP/1.1" 200 12 "-" "{AGENT}"\n'
        f'192.0.2.7 www.fict.org x y [18/Nov/2026:11:06:40 +0000] "GET /private/2 HTTP/1.1" 404 12 "-" "{AGENT}"\n'
    ).encode(),
    "Varnish": (
        f'192.0.2.7 - - [18/Nov/2026:11:06:40 +0000] "GET http://www.fict.org/private/1?a=b HTTP/1.1" 200 12 "-" "{AGENT}"\n'
        f'192.0.2.7 - x [18/Nov/2026:11:06:40 +0000] "GET http://www.fict.org/private/2 HTTP/1.1" 404 12 "-" "{AGENT}"\n'
    ).encode(),
    "X-Forwarded-For": (
        f'192.0.2.7, 10.0.0.1 - - [18/Nov/2026:11:06:40 +0000] "GET /private/1?a=b HTTP/1.1" 200 12 "-" "{AGENT}"\n'
        f'192.0.2.7, 10.0.0.1, 10.0.0.2 - x [18/Nov/2026:11:06:40 +0000] "GET /private/2 HTTP/1.1" 404 12 "-" "{AGENT}"\n'
    ).encode(),
}  # fmt: skip


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_the_same_is_found(log: bytes) -> None:
    found = audited(log, versions=ONE)
    assert (found["lines"], found["unread"], found["damaged"]) == (2, 0, [])
    [robot] = found["robots"]
    assert (robot["name"], robot["requests"]) == ("rudebot", 2)
    [violation] = robot["violated_rules"]
    assert (violation["line"], violation["count"], violation["bytes"]) == (7, 2, 24)
    assert violation["samples"] == ["/private/1?a=b", "/private/2"]
    assert violation["clients"] == ["192.0.2.0/24"]
    assert violation["first"] == "2026-11-18T11:06:40Z"


SQUID = b"""\
1795000000.766      0 127.0.0.1 NONE_NONE/000 0 - error:transaction-end-before-headers - HIER_NONE/- -
1795000000.797      5 192.0.2.7 TCP_MISS/200 33 GET http://www.fict.org/robots.txt - FIRSTUP_PARENT/10.0.0.1 text/plain
1795000001.797    215 192.0.2.7 TCP_REFRESH_MODIFIED/200 12 GET http://www.fict.org/private/1? - HIER_DIRECT/10.0.0.1 text/html
1795000002.797    215 192.0.2.7 TCP_TUNNEL/200 12 CONNECT other.example:443 - HIER_DIRECT/10.0.0.1 -
"""


def test_a_log_of_squid() -> None:
    """It has no User-Agent, so the client is named after its network."""
    for given in (None, NAMED["squid"]):
        found = audited(SQUID, versions=ONE, given=given, site=site_of("http://www.fict.org"))
        assert (found["lines"], found["unread"], found["elsewhere"]) == (4, 0, 1)
        assert found["hosts"] == ["other.example", "www.fict.org"]
        [robot] = found["robots"]
        assert (robot["name"], robot["violations"]) == ("client 192.0.2.0/24", 1)


@pytest.mark.parametrize(
    ("line", "client", "host"),
    [
        ("192.0.2.7 - x", "192.0.2.7", ""),
        ("192.0.2.7 wiki -", "192.0.2.7", "wiki"),
        ("192.0.2.7 www.fict.org - x y", "192.0.2.7", "www.fict.org"),
        ("192.0.2.7:5000 localhost:80 - x", "192.0.2.7:5000", "localhost:80"),
        ("192.0.2.7 198.51.100.1:80 -", "192.0.2.7", "198.51.100.1:80"),
        ("198.51.100.1:80 192.0.2.7 - x", "192.0.2.7", "198.51.100.1:80"),
        ("198.51.100.1 192.0.2.7 - x", "192.0.2.7", "198.51.100.1"),
        ("::1 [::1]:80 -", "::1", "[::1]:80"),
        ("[::1]:80 2001:db8::7 - x", "2001:db8::7", "[::1]:80"),
        ("www.fict.org host.isp.example - x", "host.isp.example", "www.fict.org"),
        ("www.fict.org 192.0.2.7, 10.0.0.1 - x", "192.0.2.7", "www.fict.org"),
        ("192.0.2.7, 10.0.0.1, 10.0.0.2 - x", "192.0.2.7", ""),
        ("Nov  8 11:06:40 web1.fict.org nginx: 192.0.2.7 - x", "192.0.2.7", ""),
        ("2026-11-18T11:06:40.1Z web1 httpd[9]: wiki:80 ::1 - x", "::1", "wiki:80"),
    ],
)
def test_the_client_and_the_virtual_host(line: str, client: str, host: str) -> None:
    rest = '[18/Nov/2026:11:06:40 +0000] "GET / HTTP/1.1" 200 12'
    [(found, *_, of)] = COMMON(f"{line} {rest}\n".encode())
    assert (found.decode(), of.decode().removeprefix("-")) == (client, host)


NO_VISITS = {
    "an app's": as_lines({"time": "2026-11-18T11:06:40Z", "level": "info", "msg": "started"}),
    "without a request": as_lines({"ts": 1795000000, "request": "", "status": 200}),
    "W3C without a time": b"#Fields: cs-method cs-uri-stem\nGET /private/\n",
    "W3C with too many fields": b"#Fields: date time cs-uri-stem" + b" x" * 300 + b"\nGET /\n",
}


@pytest.mark.parametrize("log", NO_VISITS.values(), ids=NO_VISITS)
def test_a_line_without_a_request_is_unread(log: bytes) -> None:
    found = audited(log, versions=ONE)
    assert (found["lines"], found["unread"], found["robots"]) == (1, 1, [])
    assert "no line of it could be read" in found["damaged"][0]["why"]


def test_a_log_without_a_line_is_not_read() -> None:
    for log in (b"\n\n", b"#Version: 1.0\n"):
        found = audited(log, versions=ONE)
        assert [each["why"] for each in found["damaged"]] == ["there is no line in it"]
    assert audited(b"", LOGS["ALB"], versions=ONE)["damaged"] == []
    found = audited(b"#Fields: date time cs-uri-stem\n#x\nnonsense\n", versions=ONE)
    assert (found["lines"], found["unread_samples"]) == (1, ["nonsense"])
