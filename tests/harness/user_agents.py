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
_LINUX = "Mozilla/5.0 (X11; Linux x86_64) " + _WEBKIT + ") Chrome/130.0.0.0 Safari/537.36"


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
    # developers.google.com/search/docs/crawling-indexing/google-common-crawlers and its neighbours
    Sent("googlebot", "search", _compatible("Googlebot/2.1; +http://www.google.com/bot.html")),
    Sent("googlebot", "search", _like_chrome("Googlebot/2.1; +http://www.google.com/bot.html")),
    Sent("googlebot", "search", _ANDROID + " Mobile Safari/537.36 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"),
    Sent("googlebot-mobile", "search", "SAMSUNG-SGH-E250/1.0 Profile/MIDP-2.0 Configuration/CLDC-1.1 UP.Browser/6.2.3.3.c.1.101 (GUI) MMP/2.0 (compatible; Googlebot-Mobile/2.1; +http://www.google.com/bot.html)"),
    Sent("googlebot-image", "search", "Googlebot-Image/1.0"),
    Sent("googlebot-video", "search", "Googlebot-Video/1.0"),
    Sent("googlebot-news", "search", "Googlebot-News"),
    Sent("storebot-google", "search", "Mozilla/5.0 (X11; Linux x86_64; Storebot-Google/1.0) " + _WEBKIT + ") " + _CHROME),
    Sent("google-inspectiontool", "search", _compatible("Google-InspectionTool/1.0;")),
    Sent("googleother", "search", _like_chrome("GoogleOther")),
    Sent("googleother-image", "search", "GoogleOther-Image/1.0"),
    Sent("google-cloudvertexbot", "AI", _like_chrome("Google-CloudVertexBot; +https://cloud.google.com/enterprise-search")),
    Sent("apis-google", "search", "APIs-Google (+https://developers.google.com/webmasters/APIs-Google.html)"),
    Sent("adsbot-google", "other", "AdsBot-Google (+http://www.google.com/adsbot.html)"),
    Sent("adsbot-google-mobile", "other", _ANDROID + " Mobile Safari/537.36 (compatible; AdsBot-Google-Mobile; +http://www.google.com/mobile/adsbot.html)"),
    Sent("mediapartners-google", "other", "Mediapartners-Google"),
    Sent("feedfetcher-google", "other", "FeedFetcher-Google; (+http://www.google.com/feedfetcher.html)"),
    Sent("google-read-aloud", "search", _LINUX + " (compatible; Google-Read-Aloud; +https://support.google.com/webmasters/answer/1061943)"),
    Sent("google-site-verification", "search", _compatible("Google-Site-Verification/1.0")),
    # bing.com/webmasters/help/which-crawlers-does-bing-use
    Sent("bingbot", "search", _compatible("bingbot/2.0; +http://www.bing.com/bingbot.htm")),
    Sent("bingbot", "search", _like_chrome("bingbot/2.0; +http://www.bing.com/bingbot.htm")),
    Sent("adidxbot", "search", _compatible("adidxbot/2.0; +http://www.bing.com/bingbot.htm")),
    Sent("microsoftpreview", "other", _like_chrome("MicrosoftPreview/2.0; +https://aka.ms/MicrosoftPreview")),
    # yandex.com/support/webmaster/robot-workings/check-yandex-robots.html
    Sent("yandexbot", "search", _compatible("YandexBot/3.0; +http://yandex.com/bots")),
    Sent("yandeximages", "search", _compatible("YandexImages/3.0; +http://yandex.com/bots")),
    Sent("yandexmetrika", "search", _compatible("YandexMetrika/2.0; +http://yandex.com/bots")),
    Sent("yandexwebmaster", "search", _compatible("YandexWebmaster/2.0; +http://yandex.com/bots")),
    Sent("yandexmedia", "search", _compatible("YandexMedia/3.0; +http://yandex.com/bots")),
    Sent("yandexvideo", "search", _compatible("YandexVideo/3.0; +http://yandex.com/bots")),
    Sent("yandexaccessibilitybot", "search", _compatible("YandexAccessibilityBot/3.0; +http://yandex.com/bots")),
    Sent("yandexrenderresourcesbot", "search", _compatible("YandexRenderResourcesBot/1.0; +http://yandex.com/bots")),
    Sent("yandexfavicons", "search", _compatible("YandexFavicons/1.0; +http://yandex.com/bots")),
    # The other search engines, each on the page that its header names
    Sent("baiduspider", "search", _compatible("Baiduspider/2.0; +http://www.baidu.com/search/spider.html")),
    Sent("duckduckbot", "search", "DuckDuckBot/1.1; (+http://duckduckgo.com/duckduckbot.html)"),
    Sent("applebot", "search", _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15 (Applebot/0.1; +http://www.apple.com/go/applebot)"),
    Sent("slurp", "search", _compatible("Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp")),
    Sent("petalbot", "search", _compatible("PetalBot;+https://webmaster.petalsearch.com/site/petalbot")),
    Sent("seznambot", "search", _compatible("SeznamBot/4.0; +https://o-seznam.cz/napoveda/vyhledavani/en/seznambot-crawler/")),
    Sent("yeti", "search", _compatible("Yeti/1.1; +https://naver.me/spd")),
    Sent("sogou", "search", "Sogou web spider/4.0(+http://www.sogou.com/docs/help/webmasters.htm#07)"),
    Sent("mojeekbot", "search", _compatible("MojeekBot/0.11; +https://www.mojeek.com/bot.html")),
    Sent("qwantbot", "search", _compatible("Qwantbot/1.0_4; +https://help.qwant.com/bot/")),
    Sent("coccocbot-web", "search", _compatible("coccocbot-web/1.0; +http://help.coccoc.com/searchengine")),
    Sent("amazonbot", "AI", _like_chrome("Amazonbot/0.1; +https://developer.amazon.com/support/amazonbot")),
    # platform.openai.com/docs/bots
    Sent("gptbot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; GPTBot/1.2; +https://openai.com/gptbot)"),
    Sent("oai-searchbot", "AI", _MAC + _WEBKIT + ") Chrome/131.0.0.0 Safari/537.36; compatible; OAI-SearchBot/1.3; +https://openai.com/searchbot"),
    Sent("chatgpt-user", "AI", f"Mozilla/5.0 {_WEBKIT}); compatible; ChatGPT-User/1.0; +https://openai.com/bot"),
    # support.anthropic.com, on crawling
    Sent("claudebot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; ClaudeBot/1.0; +claudebot@anthropic.com)"),
    Sent("claude-user", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; Claude-User/1.0; +Claude-User@anthropic.com)"),
    Sent("claude-searchbot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; Claude-SearchBot/1.0; +https://www.anthropic.com)"),
    # docs.perplexity.ai/guides/bots
    Sent("perplexitybot", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; PerplexityBot/1.0; +https://perplexity.ai/perplexitybot)"),
    Sent("perplexity-user", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; Perplexity-User/1.0; +https://perplexity.ai/perplexity-user)"),
    # developers.facebook.com/docs/sharing/webmasters/web-crawlers
    Sent("meta-externalagent", "AI", "meta-externalagent/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)"),
    Sent("meta-externalfetcher", "AI", "meta-externalfetcher/1.1 (+https://developers.facebook.com/docs/sharing/webmasters/crawler)"),
    Sent("facebookexternalhit", "other", "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)"),
    Sent("bytespider", "AI", "Mozilla/5.0 (Linux; Android 5.0) " + _WEBKIT + ") Mobile Safari/537.36 (compatible; Bytespider; spider-feedback@bytedance.com)"),
    Sent("tiktokspider", "AI", "Mozilla/5.0 (Linux; Android 5.0) " + _WEBKIT + ") Mobile Safari/537.36 (compatible; TikTokSpider; ttspider-feedback@tiktok.com)"),
    Sent("ccbot", "AI", "CCBot/2.0 (https://commoncrawl.org/faq/)"),
    Sent("mistralai-user", "AI", f"Mozilla/5.0 {_WEBKIT}; compatible; MistralAI-User/1.0; +https://docs.mistral.ai/robots)"),
    Sent("duckassistbot", "AI", "DuckAssistBot/1.2; (+http://duckduckgo.com/duckassistbot.html)"),
    Sent("cohere-ai", "AI", "cohere-ai"),
    Sent("diffbot", "AI", "Mozilla/5.0 (Windows; U; Windows NT 5.1; en-US; rv:1.9.1.2) Gecko/20090729 Firefox/3.5.2 (.NET CLR 3.5.30729; Diffbot/0.1; +http://www.diffbot.com)"),
    Sent("youbot", "AI", _compatible("YouBot/1.0; +https://about.you.com/youbot/")),
    Sent("timpibot", "AI", "Timpibot/0.9 (+http://www.timpi.io)"),
    Sent("ai2bot", "AI", _compatible("AI2Bot/1.0; +https://www.allenai.org/crawler")),
    Sent("omgili", "AI", "omgili/0.5 +http://omgili.com"),
    Sent("imagesiftbot", "AI", _compatible("ImagesiftBot; +imagesift.com")),
    # SEO
    Sent("ahrefsbot", "SEO", _compatible("AhrefsBot/7.0; +http://ahrefs.com/robot/")),
    Sent("ahrefssiteaudit", "SEO", _compatible("AhrefsSiteAudit/6.1; +http://ahrefs.com/robot/site-audit")),
    Sent("semrushbot", "SEO", _compatible("SemrushBot/7~bl; +http://www.semrush.com/bot.html")),
    Sent("siteauditbot", "SEO", _compatible("SiteAuditBot/0.97; +http://www.semrush.com/bot.html")),
    Sent("mj12bot", "SEO", _compatible("MJ12bot/v1.4.8; http://mj12bot.com/")),
    Sent("dotbot", "SEO", _compatible("DotBot/1.2; +https://opensiteexplorer.org/dotbot; help@moz.com")),
    Sent("rogerbot", "SEO", "rogerbot/1.2 (https://moz.com/help/guides/moz-procedures/what-is-rogerbot, rogerbot-crawler+shiny@moz.com)"),
    Sent("dataforseobot", "SEO", _compatible("DataForSeoBot/1.0; +https://dataforseo.com/dataforseo-bot")),
    Sent("blexbot", "SEO", _compatible("BLEXBot/1.0; +https://help.seranking.com/en/blex-crawler")),
    Sent("serpstatbot", "SEO", "serpstatbot/2.1 (advanced backlink tracking bot; https://serpstatbot.com/; abuse@serpstatbot.com)"),
    Sent("barkrowler", "SEO", _compatible("Barkrowler/0.9; +https://babbar.tech/crawler")),
    Sent("screaming", "SEO", "Screaming Frog SEO Spider/20.0"),
    # Archives
    Sent("archive.org_bot", "archive", _compatible("archive.org_bot +http://archive.org/details/archive.org_bot")),
    Sent("heritrix", "archive", _compatible("heritrix/3.4.0 +https://www.kb.dk/netarkivindsamling/")),
    Sent("arquivo-web-crawler", "archive", "Arquivo-web-crawler (compatible; heritrix/3.4.0-20200304 +https://arquivo.pt/faq-crawling)"),
    Sent("ia_archiver", "archive", "ia_archiver (+http://www.alexa.com/site/help/webmasters; crawler@alexa.com)"),
    # Previews, feeds, monitoring, libraries
    Sent("twitterbot", "other", "Twitterbot/1.0"),
    Sent("linkedinbot", "other", "LinkedInBot/1.0 (compatible; Mozilla/5.0; Apache-HttpClient +http://www.linkedin.com)"),
    Sent("slackbot-linkexpanding", "other", "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)"),
    Sent("discordbot", "other", _compatible("Discordbot/2.0; +https://discordapp.com")),
    Sent("pinterestbot", "other", _compatible("Pinterestbot/1.0; +http://www.pinterest.com/bot.html")),
    Sent("telegrambot", "other", "TelegramBot (like TwitterBot)"),
    Sent("whatsapp", "other", "WhatsApp/2.23.20.0"),
    Sent("uptimerobot", "other", "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)"),
    Sent("scrapy", "other", "Scrapy/2.19.0 (+https://scrapy.org)"),
]  # fmt: skip

BROWSERS = [
    _WINDOWS,
    _LINUX,
    _MAC + _WEBKIT + ") " + _CHROME,
    _PIXEL,
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) " + _WEBKIT + ") " + _CHROME,
    _WINDOWS + " Edg/130.0.2849.46",
    _PIXEL + " EdgA/130.0.2849.46",
    _IPHONE + " Version/17.0 EdgiOS/130.0.2849.46 Mobile/15E148 Safari/605.1.15",
    _WINDOWS + " OPR/114.0.0.0",
    "Opera/9.80 (Windows NT 6.1; WOW64) Presto/2.12.388 Version/12.18",
    "Opera/9.80 (Android; Opera Mini/36.2/191.256; U; en) Presto/2.12.423 Version/12.16",
    _WINDOWS + " Vivaldi/6.9.3447.54",
    _WINDOWS.replace("Chrome/130.0.0.0", "Chrome/128.0.0.0 YaBrowser/24.10.0.0 Yowser/2.5"),
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:132.0) Gecko/20100101 Firefox/132.0",
    "Mozilla/5.0 (Android 14; Mobile; rv:132.0) Gecko/132.0 Firefox/132.0",
    _IPHONE + " FxiOS/132.0 Mobile/15E148 Safari/605.1.15",
    _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15",
    _IPHONE + " Version/17.5 Mobile/15E148 Safari/604.1",
    _IPHONE + " CriOS/130.0.6723.90 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (iPad; CPU OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Windows NT 10.0; WOW64; Trident/7.0; rv:11.0) like Gecko",
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2; Trident/6.0)",
    "Mozilla/5.0 (compatible; Konqueror/4.5; FreeBSD) KHTML/4.5.4 (like Gecko)",
    "Mozilla/5.0 (Linux; Android 14; SAMSUNG SM-S918B) " + _WEBKIT + ") SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; U; Android 13; en-US; 22101316G) " + _WEBKIT + ") Version/4.0 Chrome/100.0.4896.58 UCBrowser/13.7.8 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 9; CUBOT_X19) " + _WEBKIT + ") Chrome/130.0.0.0 Mobile Safari/537.36",
    "Lynx/2.9.0dev.12 libwww-FM/2.14 SSL-MM/1.4.1 GNUTLS/3.7.8",
    # Apps that show a page in themselves: a robots.txt may name their robots by the same word.
    _PIXEL.replace("Mobile Safari", "Mobile DuckDuckGo/5 Safari"),
    _IPHONE + " Version/17.5 Mobile/15E148 DuckDuckGo/7 Safari/605.1.15",
    _MAC + "AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15 Ddg/17.5",
    _IPHONE + " Mobile/15E148 [Pinterest/iOS]",
    _WEBVIEW + " [Pinterest/Android]",
    _IPHONE + " Mobile/21F79 Instagram 334.0.4.32.98 (iPhone14,5; iOS 17_5_1; en_US; en; scale=3.00; 1170x2532; 606138187)",
    _WEBVIEW + " Instagram 334.0.0.42.95 Android (34/14; 450dpi; 1080x2115; samsung; SM-S918B; dm3q; qcom; en_US; 606138187)",
    _IPHONE + " Mobile/21F79 [FBAN/FBIOS;FBAV/485.1.0.45.110;FBBV/658316881;FBDV/iPhone14,5;FBMD/iPhone;FBSN/iOS;FBSV/17.5.1;FBSS/3;FBID/phone;FBLC/en_US;FBOP/5]",
    _WEBVIEW + " [FB_IAB/FB4A;FBAV/485.0.0.70.77;]",
    _IPHONE + " Mobile/21F79 LinkedInApp/9.30.1052",
    _IPHONE + " Mobile/21F79 Twitter for iPhone/10.61",
    _WEBVIEW + " trill_360105 BytedanceWebview/d8a21c6 musical_ly_360105 TikTok 36.1.5",
    _IPHONE + " Mobile/21F79 GSA/332.0.681031829 Safari/604.1",
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
