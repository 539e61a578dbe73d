"""The kinds of robots, and documented exceptions of robots in choosing a record."""

from collections.abc import Collection
from enum import Enum


class Kind(Enum):
    """The purpose of a robot."""

    AI = "AI"
    SEARCH = "search"
    SEO = "SEO"
    ARCHIVE = "archive"
    OTHER = "other"
    """Previews, feeds, monitoring, advertising, libraries, and unknown robots."""

    def came(self, count: int) -> str:
        """Return *count* with the noun for this kind, such as "6 AI crawlers"."""
        one, many = _WORDS[self]
        return f"{count:,} {one if count == 1 else many}"


_WORDS = {
    Kind.AI: ("AI crawler", "AI crawlers"),
    Kind.SEARCH: ("robot of a search engine", "robots of search engines"),
    Kind.SEO: ("SEO robot", "SEO robots"),
    Kind.ARCHIVE: ("robot of an archive", "robots of archives"),
    Kind.OTHER: ("other robot", "other robots"),
}

_TAGS = {
    "ai-crawler": Kind.AI,
    "search-engine": Kind.SEARCH,
    "seo": Kind.SEO,
    "archiver": Kind.ARCHIVE,
}
"""Kinds by tag of crawler-user-agents. If a robot has several tags, the first here decides."""

_DOCUMENTED_AI = frozenset(
    (
        "amazonbot",  # developer.amazon.com/amazonbot
        "diffbot",  # docs.diffbot.com
        "imagesiftbot",  # imagesift.com
        "meta-externalfetcher",  # developers.facebook.com/docs/sharing/webmasters/web-crawlers
        "omgili",  # webz.io/bot.html
        "omgilibot",
        "timpibot",  # timpi.io
        "youbot",  # about.you.com/youbot
    )
)
"""Robots for AI by their documentation, but not by their tags in crawler-user-agents."""

_LIKE_GOOGLEBOT = "without a record of its own it obeys that for googlebot"
_NOT_STAR = "it obeys records that name it, and not that for *"
_FALLBACKS = {
    # developers.google.com/search/docs/crawling-indexing/google-common-crawlers
    "googlebot-image": _LIKE_GOOGLEBOT,
    "googlebot-news": _LIKE_GOOGLEBOT,
    "googlebot-video": _LIKE_GOOGLEBOT,
    "google-inspectiontool": _LIKE_GOOGLEBOT,
    "googleother-image": "without a record of its own it obeys that for googleother",
    "googleother-video": "without a record of its own it obeys that for googleother",
    # developers.google.com/search/docs/crawling-indexing/google-special-case-crawlers
    "adsbot-google": _NOT_STAR,
    "adsbot-google-mobile": _NOT_STAR,
    "apis-google": _NOT_STAR,
    "mediapartners-google": _NOT_STAR,
    # support.apple.com/en-us/119829
    "applebot": _LIKE_GOOGLEBOT,
}
# yandex.com/support/webmaster/controlling-robot/robots-txt.html
_YANDEX = "without a record of its own it obeys that for yandex"


def kind_of(name: str, tags: Collection[str]) -> Kind:
    """Return the kind of the robot *name*, which has *tags* in crawler-user-agents."""
    if name in _DOCUMENTED_AI:
        return Kind.AI
    return next((kind for tag, kind in _TAGS.items() if tag in tags), Kind.OTHER)


def fallback_of(name: str) -> str | None:
    """Return a robot's documented exception in choosing a record, in words, or None."""
    if name.startswith("yandex") and name != "yandex":
        return _YANDEX
    return _FALLBACKS.get(name)
