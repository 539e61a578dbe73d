"""User-Agent headers of robots and of browsers, from the documentation of those who send them.

Versions stand for those of the day; where a page says ``W.X.Y.Z`` a number is written.
"""

# ruff: noqa: E501  # a header is a line

from __future__ import annotations

from typing import NamedTuple

_CHROME = "Chrome/130.0.0.0 Safari/537.36"
_WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko"
_ANDROID = (
    "Mozilla/5.0 (Linux; Android 6.0.1; Nexus 5X Build/MMB29P) " + _WEBKIT + ") Chrome/130.0.0.0"
)
_WINDOWS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) " + _WEBKIT + ") Chrome/130.0.0.0 Safari/537.36"
)
_MAC = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) "
_IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
_PIXEL = (
    "Mozilla/5.0 (Linux; Android 14; Pixel 8) "
    + _WEBKIT
    + ") Chrome/130.0.0.0 Mobile Safari/537.36"
)
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


def _like_chrome(name: str, end: str = "") -> str:
    return f"Mozilla/5.0 {_WEBKIT}; compatible; {name}) {_CHROME}{end}"


def _compatible(name: str) -> str:
    return f"Mozilla/5.0 (compatible; {name})"


ROBOTS = [
    Sent("googlebot", "search", _compatible("Googlebot/2.1; +http://www.google.com/bot.html")),
    Sent("googlebot", "search", _like_chrome("Googlebot/2.1; +http://www.google.com/bot.html")),
    Sent("googlebot", "search", _ANDROID + " Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"),
    Sent("adsbot-google", "other", "AdsBot-Google (+http://www.google.com/adsbot.html)"),
    Sent("bingbot", "search", _compatible("bingbot/2.0; +http://www.bing.com/bingbot.htm")),
    Sent("applebot", "search", _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)"),
    Sent("amazonbot", "AI", _like_chrome("Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot")),
    Sent("gptbot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; GPTBot/1.2; +https://openai.com/gptbot)"),
    Sent("claudebot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)"),
    Sent("meta-externalagent", "AI", "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)"),
    Sent("bytespider", "AI", "Mozilla/5.0 (Linux; Android 5.0) " + _WEBKIT + ") Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)"),
    Sent("ahrefsbot", "SEO", _compatible("AhrefsBot/7.0; +http://ahrefs.com/robot/")),
    Sent("screaming", "SEO", "Screaming Frog SEO Spider/20.0"),
    Sent("archive.org_bot", "archive", _compatible("archive.org_bot +http://archive.org/details/archive.org_bot")),
    Sent("slackbot-linkexpanding", "other", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"),
    Sent("scrapy", "other", "Scrapy/2.19.0 (+https://scrapy.org)"),
]  # fmt: skip

BROWSERS = [
    _WINDOWS,
    _MAC + _WEBKIT + ") " + _CHROME,
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
    _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
    _IPHONE + " Version/17.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    "Lynx/2.9.0dev.12 libwww-FM/2.14 SSL-MM/1.4.1 GNUTLS/3.7.8",
    _PIXEL.replace("Mobile Safari", "Mobile DuckDuckGo/5 Safari"),
    _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15 Ddg/17.5",
    _WEBVIEW + " [Pinterest/Android]",
    _IPHONE + " Mobile/21F79 Instagram 334.0.4.32.98 (iPhone14,5; iOS 17_5_1; en_US; en; scale=3.00; 1170x2532; 606138187)",
    _IPHONE + " Mobile/21F79 [FBAN/FBIOS;FBAV/485.1.0.45.110;FBBV/658316881;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.5.1;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5]",
    _WEBVIEW + " trill_360105 BytedanceWebview/d8a21c6 musical_ly_360105 TikTok 36.1.5",
]  # fmt: skip

APPS_NAMED = (
    "Pinterest",
    "DuckDuckGo",
    "Instagram",
    "TikTok",
    "Twitter",
    "LinkedInApp",
    "Snapchat",
)
"""Words that a robots.txt names robots by, and that are in the headers of apps."""
