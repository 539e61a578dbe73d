"""May a robot fetch a URL, and why? Only ``decide`` answers.

``enforcement`` calls ``decide`` before a request is downloaded, before a request is sent, and when
a page has come from another URL. ``KosterMiddleware.is_allowed``, the link filter, ``scrapy robots
explain`` and ``survey``, and a crawl from the HTTP cache also use ``decide``.

``is_plainly_allowed`` is a shortcut for usual requests: True means that ``decide`` would allow the
URL. Rules are evaluated only here: see ``tests/crawl/test_one_decision.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from scrapy_koster.parsers.koster import KosterRobotParser
from scrapy_koster.parsers.rfc9309 import Rfc9309RobotParser
from scrapy_koster.protocol.defect import guarded, returned
from scrapy_koster.protocol.hazard import Watch
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.rewriting import is_plain
from scrapy_koster.protocol.step import Obey
from scrapy_koster.protocol.verdict import Verdict, forbidden_spelling, permission, verdict_on

if TYPE_CHECKING:
    from scrapy_koster.crawl.config import Config
    from scrapy_koster.protocol.defect import Permission
    from scrapy_koster.protocol.delay import Delay
    from scrapy_koster.protocol.policy import Policy
    from scrapy_koster.protocol.site import Site
    from scrapy_koster.protocol.step import Settled
    from scrapy_koster.protocol.usage import Statement
    from scrapy_koster.protocol.usage_lines import UsageLines
    from scrapy_koster.protocol.verdict import Parser, Source


class Decision(NamedTuple):
    """A verdict, and the statements about the use of the page."""

    verdict: Verdict
    statements: tuple[Statement, ...]
    """The usage statements in the robots.txt about the URL; empty if its rules forbid the URL."""


def decide(
    url: str,
    robot: str,
    *,
    site: Site,
    step: Settled,
    parser: Parser | None,
    source: Source,
    usage: UsageLines | None,
    delay: Delay | None,
    config: Config,
    now: float,
) -> Decision:
    """Return the decision on *url*, a URL of *site*, at the time *now*.

    *step* is the step of the site, *parser* has read its file, *usage* has the usage statements and
    *delay* the delay of the file. Raises ParserDefectError if the parser has a defect.
    """
    policy = config.policy
    overrides = policy.overrides.of(site, now)
    forbidden = forbidden_spelling(url, robot, permission(step, parser, policy, overrides))
    statements: tuple[Statement, ...] = ()
    if forbidden is None and usage is not None and isinstance(step, Obey):
        statements = usage.statements(url, robot)
    is_for_robots_txt = is_robots_txt(url)
    refuses = config.usage.refuses and not is_for_robots_txt
    verdict = verdict_on(
        url,
        robot,
        site=site,
        step=step,
        parser=parser,
        source=source,
        policy=policy,
        forbidden=forbidden,
        too_long=None if is_for_robots_txt else config.pace.too_long(delay),
        overrides=overrides,
        stated=config.usage.disallowed(statements) if refuses else None,
    )
    return Decision(verdict, statements)


def rules_of(
    site: Site, step: Settled, parser: Parser | None, *, policy: Policy, now: float
) -> tuple[Permission, float]:
    """Return the permission of *site* for ``is_plainly_allowed``, and the time when it ends.

    A permission ends with the step, or when an override expires.
    """
    overrides = policy.overrides.of(site, now)
    until = min([step.until, *(override.ends for override in overrides)])
    return permission(step, parser, policy, overrides), until


def is_plainly_allowed(url: str, robot: str, *, origin: str, allows: Permission) -> bool:
    """Return whether *url* has only one spelling, and the rules allow it. Runs for each request.

    *origin* is the site with a slash at its end.
    """
    return allows(url, robot) and is_plain(url.removeprefix(origin))


def checked_watch(parser: object, robot: str) -> Watch | None:
    """Return the watch for hazards of a file for *robot*.

    None if the parser has no watch, or is neither KosterRobotParser nor Rfc9309RobotParser.
    Raises ParserDefectError if the method of a subclass raises, or returns another type.
    """
    if not isinstance(parser, (KosterRobotParser, Rfc9309RobotParser)):
        return None
    watch: object = guarded(parser, "watch", lambda: parser.watch(robot))
    if watch is None or isinstance(watch, Watch):
        return watch
    raise returned(parser, "watch", watch, "a Watch or None")
