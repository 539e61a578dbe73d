"""What was sent and received for a robots.txt."""

from __future__ import annotations

from scrapy_koster.protocol.exchange import Exchange, digest_of, is_digest


def test_it_is_short_and_printable() -> None:
    digest = digest_of(b"")
    body = b"x" * 10_000
    exchange = Exchange("http://h/\x1b[2J", 0.0, (), 200, (), body, False, None, None, digest)
    assert is_digest(exchange.digest)
    assert not is_digest("sha256:")
    assert repr(exchange) == r"<200 http://h/\x1b[2J, 10000 octets>"
