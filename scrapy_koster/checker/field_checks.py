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
        "The Sitemap is not a full URL: robots do not find it.",
        "Write the whole URL, from http:// or https:// on.",
    ),
    Check(
        "K062",
        _WARNING,
        "3.2",
        "B11",
        "The Crawl-delay is not a number of seconds: it is ignored.",
        "Write only a number, for example 10.",
    ),
    # The preferences.
    Check(
        "K070",
        _ERROR,
        "3.2",
        "B18",
        "The preferences are not a Dictionary of RFC 9651, so the line has no effect, or they are"
        " too long, so the line disallows all known labels.",
        'Write labels in lower case, separated by commas: "train-ai=n, search=y".',
    ),
    Check(
        "K071",
        _ERROR,
        "3.2",
        "B18",
        "The value of a label is not a preference: the label has no effect.",
        'Write "y" or "n" in Content-Usage, "yes" or "no" in Content-Signal.',
    ),
    Check(
        "K072",
        _ERROR,
        "3.2",
        "B18",
        "The path of the preferences does not begin with a slash: the line has no effect.",
        'Begin the path with "/".',
    ),
    Check(
        "K073",
        _ERROR,
        "3.2",
        "B18",
        "The Content-Usage line comes before any User-agent line: it has no effect.",
        'Put "User-agent: *" before it.',
    ),
)
"""Those of fields of any name, and of usage preferences."""
