"""The names of the robot, for decisions and in the User-Agent header (3.2.1)."""

import re
from weakref import WeakKeyDictionary

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Headers
from scrapy.utils.python import without_none_values

from scrapy_koster.crawl.config import Config, checked_robot
from scrapy_koster.crawl.messages.log import Log
from scrapy_koster.protocol.nametoken import TOKEN, names_of

_META = 'meta["robotstxt_user_agent"]'
# A second word after the name. A valid name is followed only by a version or a comment.
_WORDS = re.compile(rf"{TOKEN}\s+\w")
# A URL, a mail address, or the name of a host.
_PAGE_OR_ADDRESS = re.compile(r"://|@|[a-z][0-9-]*\.[a-z]{2}", re.IGNORECASE)


def sent_user_agent(headers: Headers) -> str:
    """Return the User-Agent header in *headers*, or "".

    Several header lines are joined with commas, which means the same (RFC 9110, 5.3).
    """
    # Faster than headers.getlist(), which normalizes the name in every call.
    return b", ".join(dict.get(headers, b"User-Agent") or ()).decode("latin-1")


def user_agent(crawler: Crawler) -> str:
    """Return the User-Agent header that Scrapy sets in a request without this header.

    Scrapy's DefaultHeadersMiddleware and UserAgentMiddleware set the header in this order, and do
    not replace a header that is set, even if it is empty.
    """
    headers = Headers(without_none_values(crawler.settings["DEFAULT_REQUEST_HEADERS"] or {}))
    if said := getattr(crawler.spider, "user_agent", crawler.settings["USER_AGENT"]):
        headers.setdefault(b"User-Agent", said)
    return sent_user_agent(headers)


def copies_of(crawler: Crawler, config: Config) -> str:
    """Return the name under which the crawl stores copies: the name tokens, with commas.

    Robots with random User-Agent headers that begin with ``Mozilla/5.0`` share their copies. In a
    survey for another robot, ``robot_of_copies`` of the spider names the robot that fetches.
    """
    if named := getattr(crawler.spider, "robot_of_copies", None):
        return str(named)
    return ", ".join(names_of(config.robot or user_agent(crawler)))


class Robot:
    """The names of the robot, by which requests are decided.

    A name is a name token, a User-Agent header that begins with a name token (A10), or several name
    tokens with commas. Downloader middlewares may change the header of a request after the
    decision, so the name is compared with the header of the first request that got a page.
    The first request without a page is compared, too: a wrong name may be why all are refused.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        """Use the name in *config*. If there is no name, the headers of requests name the robot."""
        self._log = Log(__name__, crawler)
        self._config = config
        self._user_agent = user_agent(crawler)
        self._is_survey = getattr(crawler.spider, "is_survey", False)
        self.name = config.robot or self._user_agent
        """The name for requests without a name of their own."""
        self._names: WeakKeyDictionary[Request, str] = WeakKeyDictionary()
        """The names from the meta or the header of a request, by request."""

    def name_of(self, request: Request) -> str:
        """Return the robot's name in the meta or the header of *request*, or the name of the crawl.

        The header counts only if neither a setting nor the spider names the robot. Raises
        ValueError if the name in the meta is invalid.
        """
        said = request.meta.get("robotstxt_user_agent")
        name = checked_robot(said, _META, self._config.parser) if said else None
        if name is None and self._config.robot is None and b"User-Agent" in request.headers:
            name = sent_user_agent(request.headers)
        if name is None:
            return self.name
        self._names[request] = name
        return name

    def decided_by(self, request: Request) -> str:
        """Return the name by which *request* was decided, even if its header has changed since."""
        return self._names.get(request, self.name) if self._names else self.name

    def sends(self, headers: Headers) -> None:
        """Note the *headers* of a request for a robots.txt, which passed through all middlewares.

        A refused request does not reach the later middlewares.
        """
        self._user_agent = sent_user_agent(headers) or self._user_agent

    def compare(self, request: Request, *, is_sent: bool) -> None:
        """Check the User-Agent header of the first request, and log warnings.

        Also check the first request with a page (*is_sent*), whose header is certain. A survey may
        be for another robot.
        """
        if request.meta.get("dont_obey_robotstxt") or self._is_survey:
            return
        if not self._log.is_first(f"compared, {is_sent}"):
            return
        header, robot = sent_user_agent(request.headers), self.decided_by(request)
        if b"User-Agent" not in request.headers and not is_sent:
            header = self._user_agent  # Scrapy sets the header after our decision
        names = names_of(robot)
        if _WORDS.match(robot):
            self._log.warning_once(
                "The robot's name '%(name)s' is used as '%(token)s': a name is one word. Set"
                ' ROBOTSTXT_USER_AGENT to one word, for example "%(joined)s".',
                name=robot,
                token=names[0],
                joined="".join(robot.partition("/")[0].split()),
            )
        if not any(name in header.lower() for name in {*names} - {"", "mozilla"}):
            # 3.2.1: "The name token a robot chooses for itself should be sent as part of the HTTP
            # User-agent header, and must be well documented."
            self._log.warning_once(
                "Sites cannot recognize your robot: robots.txt is read for '%(token)s', but your"
                " requests say '%(header)s'. Set ROBOTSTXT_USER_AGENT to the robot's name, for"
                ' example "figtree", and USER_AGENT to a header that begins with it, for example'
                ' "FigTree/0.1 (+https://example.com/robot)". If a downloader middleware sets the'
                " header, give it a lower order than KosterMiddleware.",
                token=", ".join(names) or "*",
                header=header,
            )
        elif not _PAGE_OR_ADDRESS.search(header):
            self._log.warning_once(
                "The User-Agent header '%(header)s' contains neither a URL nor a mail address. Site"
                " owners need a way to reach you: add the URL of a page about it to USER_AGENT, for"
                ' example "FigTree/0.1 (+https://example.com/robot)", or a mail address.',
                header=header,
            )
