"""Which addresses are not public."""

from __future__ import annotations

import pytest
from harness.crawling import Crawl

from scrapy_koster.crawl.fetching.fetcher import _is_unknown, network_of


@pytest.mark.parametrize(
    ("hosts", "network"),
    [
        ("127.0.0.1 127.9.9.9 127.1 0x7f.1 0177.0.0.1 2130706433 127.0.0.1.", "loopback"),
        ("localhost LocalHost localhost. a.localhost 0.0.0.0 0 [::] [::1]", "loopback"),
        ("[::ffff:127.0.0.1] [::ffff:7f00:1] [64:ff9b::7f00:1] [2002:7f00:1::]", "loopback"),
        ("169.254.169.254 0xa9fea9fe [fe80::1] fe80::1%eth0 [::ffff:169.254.0.1]", "link-local"),
        ("10.0.0.1 10.1 172.16.0.1 192.168.1.1 100.64.0.1 198.18.0.1", "private"),
        ("240.0.0.1 255.255.255.255 224.0.0.1 [fd00::1] [ff02::1]", "private"),
        ("[::ffff:10.0.0.1] [64:ff9b::a00:1] [2002:a00:1::]", "private"),
        ("192.0.0.192 192.0.0.9 [64:ff9b:1::1] [fec0::1] [5f00::1] [3fff::1] [4000::1]", "private"),
        ("[::127.0.0.1] [::7f00:1] 127%2e0%2e0%2e1 localhost%2e %6cocalhost 127%2E1", "loopback"),
        ("127\u30020\u30020\u30021 \uff11\uff12\uff17.1 localhost\uff0e", "loopback"),
        ("[::10.0.0.1] 10%2e0.0.1", "private"),
        ("8.8.8.8 172.32.0.1 [2606:4700::1111] [::ffff:8.8.8.8] [64:ff9b::808:808]", ""),
        ("fict.org localhost.fict.org 127.0.0.1.fict.org 10.fict.org 1.2.3.4.5 a..b", ""),
    ],
)
def test_the_network_of_an_address(hosts: str, network: str) -> None:
    found = {host: network_of(host) for host in hosts.split()}
    assert found == dict.fromkeys(hosts.split(), network)


@pytest.mark.parametrize("host", ["", "a\0b", "é", "x" * 300])
def test_what_is_no_address(host: str) -> None:
    assert network_of(host) == ""


async def test_a_host_that_resolves_is_not_unknown(crawl: Crawl) -> None:
    """Scrapy may say of it that it cannot be resolved, if its own resolver fails."""
    assert not await _is_unknown("http://127.0.0.1/robots.txt")
    assert await _is_unknown("http://no-such-host.invalid/robots.txt")
