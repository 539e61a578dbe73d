"""Settings that are wrong: a crawl with one of them does not start."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from scrapy_koster import DeferringScheduler

NOT_SECS = (-1, "-0.5", "soon", "", True, [1], "nan", "inf", float("inf"), 10**400, "1e400")
NOT_WHOLE = (-1, 1.5, 10.0, "1.5", "many", "", True, [1])
NOT_CLASSES = ("nowhere.Nothing", "nothing", "scrapy_koster.Nothing", "os.path.join", "", 3)


class Ours(DeferringScheduler):
    """A subclass falls back to itself, too."""


OVERRIDE: dict[str, Any] = {
    "site": "https://a.example",
    "allow": ["/a"],
    "reason": "the owner agreed",
    "until": "2099-12-31",
}
NO_ORIGINS = (
    *("", "a.example", "//a.example", "ftp://a.example", "https://", "https://*.example"),
    *("https://a.example/b", "https://a.example?", "https://u@a.example", "https://a.example:x"),
    *("https://a.example ", "https://[a", "https:///"),
)

SECS = ("EXPIRY", "EXPIRY_MIN", "EXPIRY_MAX", "RESTRICTED_EXPIRY", "STALE_IF_ERROR", "DEFER_LIMIT")
MORE_THAN_0_SECS = ("TIMEOUT", "DEFER_FIRST", "DEFER_MAX", "CRAWL_DELAY_MAX")
WRONG = {
    **{f"KOSTER_{name}_SECS": NOT_SECS for name in (*SECS, "IDLE_LIMIT")},
    **{f"KOSTER_{name}_SECS": (0, *NOT_SECS) for name in MORE_THAN_0_SECS},
    "ROBOTSTXT_USER_AGENT": (
        *(" FigTree", "(FigTree)", "/0.1", "\nfig", 3, {"figtree": 1}),
        *(["FigTree/0.1"], [3], ["figtree", "*"], ["a b"], ("figtree", "")),
    ),
    "KOSTER_PARSER": (*NOT_CLASSES, dict, "scrapy_koster.storage.memory.MemoryStorage"),
    "KOSTER_STORAGE": (*NOT_CLASSES, dict, "scrapy_koster.KosterRobotParser"),
    "KOSTER_SQLITE_PATH": ("", 3, b"x"),
    "KOSTER_MEMORY_BYTES": (0, *NOT_WHOLE),
    "KOSTER_CONCURRENT_FETCHES": (0, *NOT_WHOLE),
    "KOSTER_REDIS_URL": (
        *("", 3, b"redis://a", "127.0.0.1:6379", "http://a", "redis:", "redis://", "redis://:1"),
        *("redis://a:b", "redis://a:70000", "redis://a/b", "redis://a/0/1", "redis://[a"),
        *("redis://a?timeout=1", "redis://a?decode_responses=1", "redis://a/0#1", "unix://"),
    ),
    "KOSTER_REDIS_PREFIX": ("", 3, b"a", "a b", "{a}", "a*", "a\n", "é"),
    "KOSTER_REDIS_TTL_SECS": (0, *NOT_WHOLE),
    "KOSTER_MAX_BYTES": (0, *NOT_WHOLE),
    "KOSTER_REDIRECT_MAX": NOT_WHOLE,
    "KOSTER_CRAWL_DELAY": ("Obey", "clamp", "", True, 10, ["obey"]),
    "KOSTER_RESTRICTED": ("Disallow", "defer", "", True, ["allow"]),
    "KOSTER_MISSING": ("Disallow", "defer", "", False, ["allow"]),
    "KOSTER_HTML_ROBOTSTXT": ("Disallow", "obey", "", True, ["allow"]),
    "KOSTER_UNAVAILABLE": ("Defer", "wait", "", True, ["allow"]),
    "KOSTER_PAGE_META": (3, True, [None], [""], ["proxy", 3], [["proxy"]], ("proxy", b"x")),
    "KOSTER_OVERRIDES": (
        *("nothing", "{}", '[{"site": "https://a.example"}]', "[" * 100_000, 3, True, {}, [3]),
        *([{}], [OVERRIDE | {"pattern": "/"}], [{**OVERRIDE, "allow": []}]),
        *([OVERRIDE | {"allow": "/a"}], [OVERRIDE | {"allow": ["a"]}], [OVERRIDE | {"allow": [3]}]),
        *([OVERRIDE | {"allow": [path]}] for path in ("/*", "/a$", "/a#b", "/a b", "/\n", "")),
        *([OVERRIDE | {"site": site}] for site in (*NO_ORIGINS, None, 3)),
        *([OVERRIDE | {"reason": reason}] for reason in ("", " ", None, 3)),
        *([OVERRIDE | {"until": until}] for until in ("", "soon", "2027-02-30", "20270101", 2027)),
        *([OVERRIDE | {"until": datetime(2027, 1, 1, tzinfo=timezone.utc)}],),
        *([{key: OVERRIDE[key] for key in OVERRIDE if key != left}] for left in OVERRIDE),
    ),
    "KOSTER_FILTER_LINKS": ("perhaps", "", [], "2.5"),
    "KOSTER_DRY_RUN": ("perhaps", "", [], "2.5"),
    "KOSTER_FALLBACK_SCHEDULER": (*NOT_CLASSES, dict, "scrapy_koster.DeferringScheduler", Ours),
    "KOSTER_REPORT": (3, True, [], b"x.html"),
    "KOSTER_ARCHIVE": (3, True, [], b"x"),
    "KOSTER_USAGE_PURPOSES": ("Train-AI", ["train-ai", 3], [None], [""], 3, True, ["a b"], "n=y"),
    "KOSTER_USAGE_ACTION": ("Drop", "keep", "", True, ["drop"]),
    "KOSTER_USAGE_UNKNOWN": ("Keep", "report", "", False, ["keep"]),
    "KOSTER_USAGE_FIELD": (3, True, ["usage"], b"usage", "a b", "1a"),
    "KOSTER_PAGE_DIRECTIVES": ("html", ["meta", "body"], [None], 3, True, [["meta"]]),
}
