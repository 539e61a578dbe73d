"""By how much the next visit to a host is put off, for what the last may have come late."""

from __future__ import annotations

import pytest

from scrapy_koster.crawl.hosts import Host
from scrapy_koster.crawl.sites import SiteState
from scrapy_koster.protocol.site import Site


def test_what_is_not_known_of_a_quick_visit_counts_as_late() -> None:
    """Where all visits so far came late, the quickest of them did too."""
    host = Host(SiteState(Site("http", "a.example", 80)))
    took = [0.16, 0.12, 0.12, 0.06, 0.1, 0.03, 0.03]
    late = [0.16, 0.12, 0.0, 0.06, 0.04, 0.03, 0.0]
    assert [host.lateness(secs) for secs in took] == pytest.approx(late)
