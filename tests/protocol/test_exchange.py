"""What was sent and received for a robots.txt."""

from __future__ import annotations

from scrapy_koster.protocol.exchange import Exchange, digest_of, is_digest


def test_it_is_short_and_printable() -> None:
    exchange = Exchange(
        url="http://h/\x1b[2J",
        began=0.0,
        sent=(),
        status=200,
        received=(),
        body=b"x" * 10_000,
        is_cut=False,
        protocol=None,
        address=None,
        digest=digest_of(b""),
    )
    assert is_digest(exchange.digest)
    assert not is_digest("sha256:")
    assert repr(exchange) == r"<200 http://h/\x1b[2J, 10000 octets>"
