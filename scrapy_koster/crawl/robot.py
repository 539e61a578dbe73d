"""3.2.1: the robot, by the name that decides for it and by the header that it sends."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.http import Headers
from scrapy.utils.python import without_none_values

from scrapy_koster.crawl.config import Config, checked_robot
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.nametoken import TOKEN, names_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

_META = 'meta["robotstxt_user_agent"]'
# So many requests are compared: each costs a signal.
_COMPARED = 100
# More words than a name has: after a name comes its version, or a comment.
_WORDS = re.compile(rf"{TOKEN}\s+\w")
# A URL, a mail address, or the name of a host.
_PAGE_OR_ADDRESS = re.compile(r"://|@|[a-z][0-9-]*\.[a-z]{2}", re.IGNORECASE)


def sent_user_agent(headers: Headers) -> str:
    """Return the User-Agent header that is sent with *headers*, "" for none.

    Several are sent in lines of their own, which is the same as one line with
    commas (RFC 9110, 5.3).
    """
    # Not headers.getlist(), which folds the case of the name each time.
    return b", ".join(dict.get(headers, b"User-Agent") or ()).decode("latin-1")


def user_agent(crawler: Crawler) -> str:
    """Return the User-Agent header of a request that has none of its own.

    As Scrapy's DefaultHeadersMiddleware and UserAgentMiddleware set it: one
    that is set is not set again, though it is empty.
    """
    headers = Headers()
    for name, value in without_none_values(
        crawler.settings["DEFAULT_REQUEST_HEADERS"] or {}
    ).items():
        headers.setdefault(name, value)
    if said := getattr(crawler.spider, "user_agent", crawler.settings["USER_AGENT"]):
        headers.setdefault(b"User-Agent", said)
    return sent_user_agent(headers)


def copies_of(crawler: Crawler, config: Config) -> str:
    """Return the name of the robot whose copies the crawl uses: its name tokens, with commas.

    Random User-Agent headers that begin alike, with ``Mozilla/5.0``, share their copies. A survey
    for another robot names its own, which is the robot that fetches.
    """
    if named := getattr(crawler.spider, "robot_of_copies", None):
        return str(named)
    return ", ".join(names_of(config.robot or user_agent(crawler)))


class Robot:
    """By which name a request is decided on, and whether sites know the robot by it.

    A name is a name token, or a User-Agent header, which begins with one (A10), or several name
    tokens with commas between them.
    The header that is sent is known only when the request has passed all
    downloader middlewares, long after it has been decided on.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        """Use the name of the settings, which may be a header; without one that of each request."""
        self._crawler = crawler
        self._log = Log(__name__, crawler)
        self._parser = config.parser
        self._token = config.robot
        self.name = config.robot or user_agent(crawler)
        """Of a request that says nothing of the robot itself."""
        self._names: WeakKeyDictionary[Request, str] = WeakKeyDictionary()
        """Of requests that have another name."""
        self._left = _COMPARED
        crawler.signals.connect(self._compare, signals.request_reached_downloader)

    def name_of(self, request: Request) -> str:
        """Return what *request* says of the robot, or else what the crawl does."""
        said = request.meta.get("robotstxt_user_agent")
        if said and (checked := checked_robot(said, _META, self._parser)):
            name = checked
        elif self._token is None and b"User-Agent" in request.headers:
            name = sent_user_agent(request.headers)
        else:
            return self.name
        self._names[request] = name
        return name

    def name_or_own(self, request: Request) -> str:
        """Return what ``name_of`` does, and the name of the crawl if that of *request* is invalid.

        The errback of the request is told when it is decided.
        """
        try:
            return self.name_of(request)
        except ValueError:
            return self.name

    def decided_by(self, request: Request) -> str:
        """Return the name by which *request* was decided, whatever its headers have become."""
        return self._names.get(request, self.name) if self._names else self.name

    def _compare(self, request: Request) -> None:
        """Compare the header that is sent with the name that decided, for the first requests."""
        if request.meta.get("dont_obey_robotstxt"):
            return
        self._left -= 1
        header, robot = sent_user_agent(request.headers), self.decided_by(request)
        names = names_of(robot)
        if _WORDS.match(robot) and self._log.is_first("words"):
            self._log.warning(
                "The robot's name '%(name)s' is used as '%(token)s': a name is one word (section"
                ' 3.2.1). Set ROBOTSTXT_USER_AGENT to one word, for example "%(joined)s".',
                name=robot,
                token=names[0],
                joined="".join(robot.partition("/")[0].split()),
            )
        if not any(_is_known(name, header) for name in names):
            # 3.2.1: "The name token a robot chooses for itself should be sent as part of the HTTP
            # User-agent header, and must be well documented."
            self._log.warning(
                "Sites cannot recognize your robot: rules are selected by the name token"
                " '%(token)s', and the User-Agent header is '%(header)s' (section 3.2.1). Set"
                ' ROBOTSTXT_USER_AGENT to the robot\'s name, for example "figtree", and USER_AGENT'
                ' to a header that begins with it, for example "FigTree/0.1'
                ' (+https://example.com/robot)". If a downloader middleware sets the header, give'
                " it a lower order than KosterMiddleware.",
                token=", ".join(names),
                header=header,
            )
            self._left = 0
        elif not _PAGE_OR_ADDRESS.search(header) and self._log.is_first("header"):
            self._log.warning(
                "The User-Agent header '%(header)s' contains neither a URL nor a mail address, so"
                " the owner of a site cannot look up your robot or contact you. A robot must be"
                " well documented (section 3.2.1). Add the URL of a page about it to USER_AGENT,"
                ' for example "FigTree/0.1 (+https://example.com/robot)", or a mail address.',
                header=header,
            )
        if self._left <= 0:
            connected = signals.request_reached_downloader
            self._crawler.signals.disconnect(self._compare, connected)


def _is_known(token: str, header: str) -> bool:
    return token in header.lower() and token not in ("", "mozilla")
