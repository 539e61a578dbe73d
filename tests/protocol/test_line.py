"""What is kept of the last file that was read."""

from __future__ import annotations

from scrapy_koster.protocol.line import path_lines, with_line_feeds
from scrapy_koster.protocol.rfc9309 import group_rules
from scrapy_koster.protocol.robotstxt import obeyed_rules

FILE = b"User-agent: *\nCrawl-delay: 1\nDisallow: /a\nAllow: *b\n"


def test_both_standards_share_the_lines_of_the_same_record() -> None:
    text = with_line_feeds(FILE)
    assert group_rules(text, "figtree") == [("D", "/a"), ("", "*b")]
    assert path_lines(text, text.index("\nDis"), len(text)) is path_lines(
        text, text.index("\nDis"), len(text)
    )
    assert obeyed_rules(text, "figtree") == [("D", "a")]
    assert obeyed_rules(text, "figtree") is obeyed_rules(text, "figtree")


def test_nothing_is_kept_of_a_long_file() -> None:
    text = with_line_feeds(FILE + b"#" * 65_536)
    assert obeyed_rules(text, "figtree") == [("D", "a")]
    assert obeyed_rules(text, "figtree") is not obeyed_rules(text, "figtree")
