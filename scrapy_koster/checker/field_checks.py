"""The kinds of findings about fields that the standards leave to others."""

from __future__ import annotations

from scrapy_koster.checker.kind import Check, Severity

_ERROR, _WARNING, _NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

FIELD_CHECKS = (
    Check(
        "K060",
        _NOTE,
        "3.2",
        "B11",
        "No robot that we know of reads a field of this name.",
        'Remove the line, or put "#" before it.',
    ),
    Check(
        "K061",
        _WARNING,
        "3.2",
        "B11",
        "The Sitemap is no full URL: robots do not find it.",
        "Write the whole URL, from http:// or https:// on.",
    ),
    Check(
        "K062",
        _WARNING,
        "3.2",
        "B11",
        "The Crawl-delay is no number of seconds: it is ignored.",
        "Write a number alone, such as 10.",
    ),
    # The preferences.
    Check(
        "K070",
        _ERROR,
        "3.2",
        "B18",
        "The preferences are no Dictionary of RFC 9651: the line states nothing.",
        'Write labels in lower case, separated by commas: "train-ai=n, search=y".',
    ),
    Check(
        "K071",
        _ERROR,
        "3.2",
        "B18",
        "The value of a label is not a preference: the line states nothing about it.",
        'Write "y" or "n" in Content-Usage, "yes" or "no" in Content-Signal.',
    ),
    Check(
        "K072",
        _ERROR,
        "3.2",
        "B18",
        "The path of the preferences does not begin with a slash: the line states nothing.",
        'Begin the path with "/".',
    ),
    Check(
        "K073",
        _ERROR,
        "3.2",
        "B18",
        "The Content-Usage line stands before any User-agent line: it states nothing.",
        'Put "User-agent: *" before it.',
    ),
)
"""Those of fields of any name, and of usage preferences."""
