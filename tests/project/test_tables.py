"""The tables of promises, of skips and of other plugins."""

from __future__ import annotations

import promises
import skips
from ecosystem.page import expected, written
from harness.documents import text

MEND = "the table is out of date: make ecosystem-page"
LOG = """\
SKIPPED [1] tests/harness/redis_server.py:95: this Redis server was built without TLS
SKIPPED [2] tests/storage/test_storage.py:9: no redis-server
1 passed, 3 skipped in 1.00s
"""


def test_each_promise_is_of_a_page_and_has_one_test() -> None:
    """`python tests/promises.py` writes the table."""
    found = list(promises.promises())
    assert promises.PAGE.read_text("utf-8") == promises.table(found)
    assert len({(page, words) for page, words, _ in found}) == len(found)
    assert all(text(page) for page, _, _ in found)


def test_a_skip_with_a_reason_that_is_not_listed_is_found() -> None:
    """tests/skips.md lists the tests that a machine with only Python and make may skip."""
    assert skips.unlisted(LOG, skips.PAGE.read_text("utf-8")) == [
        "tests/storage/test_storage.py:9: no redis-server"
    ]
    assert len(skips.unlisted(LOG, "")) == 2


def test_the_page_of_other_plugins_has_the_rows_of_the_tests() -> None:
    """docs/ecosystem.md has a row for each test with the mark `beside`."""
    rows = expected()
    shown = [row._replace(version="") for row in written()]
    assert shown == [row._replace(test="") for row in rows], MEND
    assert [row for row in written() if not row.version or row.version == "not yet"] == [], MEND
    assert [row.test for row in rows if not row.holds] == []
    for names in ([row.test for row in rows], [row.beside for row in rows]):
        assert len(set(names)) == len(names)
