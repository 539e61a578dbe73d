"""tests/skips.md: which tests may be skipped on a machine that has only Python and make."""

from __future__ import annotations

from skips import PAGE, unlisted

LOG = """\
SKIPPED [1] tests/harness/redis_server.py:95: this Redis server was built without TLS
SKIPPED [2] tests/storage/test_storage.py:9: no redis-server
1 passed, 3 skipped in 1.00s
"""


def test_a_skip_with_a_reason_that_is_not_listed_is_found() -> None:
    assert unlisted(LOG, PAGE.read_text("utf-8")) == [
        "tests/storage/test_storage.py:9: no redis-server"
    ]
    assert len(unlisted(LOG, "")) == 2
