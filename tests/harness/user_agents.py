"""User-Agent headers of robots and of browsers, from the documentation of those who send them.

Versions stand for those of the day; where a page says ``W.X.Y.Z`` a number is written.
"""

# ruff: noqa: E501  # a header is a line

from __future__ import annotations

from typing import NamedTuple

_CHROME = "Chrome/130.0.0.0 Safari/537.36"
_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko"
_WINDOWS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + _WEBKIT + ") Chrome/130.0.0.0 Safari/537.36"
)
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) "
_IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
_WEBVIEW = (
    "Mozilla/5.0 (Linux; Android 14; SM-S918B Build/UP1A.231005.007; wv) " + _WEBKIT + ")"
    " Version/4.0 Chrome/130.0.0.0 Mobile Safari/537.36"
)  # fmt: skip


class Sent(NamedTuple):
    """What a robot sends."""

    name: str
    """Its name token, in lower case."""
    kind: str
    """What it is for; those of a search engine's other services count as search."""
    header: str


def _like_chrome(name: str) -> str:
    return f"Mozilla/5.0 {_WEBKIT}; compatible; {name}) {_CHROME}"


def _compatible(name: str) -> str:
    return f"Mozilla/5.0 (compatible; {name})"


ROBOTS = [
    Sent("googlebot", "search", _like_chrome("Googlebot/2.1; +http://www.google.com/bot.html")),
    Sent("adsbot-google", "other", "AdsBot-Google (+http://www.google.com/adsbot.html)"),
    Sent("applebot", "search", _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)"),
    Sent("gptbot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; GPTBot/1.2; +https://openai.com/gptbot)"),
    Sent("meta-externalagent", "AI", "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)"),
    Sent("bytespider", "AI", "Mozilla/5.0 (Linux; Android 5.0) " + _WEBKIT + ") Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)"),
    Sent("screaming", "SEO", "Screaming Frog SEO Spider/20.0"),
    Sent("archive.org_bot", "archive", _compatible("archive.org_bot +http://archive.org/details/archive.org_bot")),
    Sent("slackbot-linkexpanding", "other", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"),
    Sent("scrapy", "other", "Scrapy/2.19.0 (+https://scrapy.org)"),
]  # fmt: skip

BROWSERS = [
    _WINDOWS,
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
    _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
    _IPHONE + " Version/17.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    "Lynx/2.9.0dev.12 libwww-FM/2.14 SSL-MM/1.4.1 GNUTLS/3.7.8",
    _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15 Ddg/17.5",
    _WEBVIEW + " [Pinterest/Android]",
    _IPHONE + " Mobile/21F79 Instagram 334.0.4.32.98 (iPhone14,5; iOS 17_5_1; en_US; en; scale=3.00; 1170x2532; 606138187)",
    _WEBVIEW + " trill_360105 BytedanceWebview/d8a21c6 musical_ly_360105 TikTok 36.1.5",
]  # fmt: skip

APPS_NAMED = ("Pinterest", "DuckDuckGo", "Instagram", "TikTok")
"""Words that a robots.txt names robots by, and that are in the headers of apps."""
