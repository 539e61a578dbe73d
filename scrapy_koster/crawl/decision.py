"""Decides whether a robot may fetch a URL, and why. Every decision is made by ``decide``.

``enforcement`` calls ``decide`` before a request is downloaded, before a request is sent, and when
a page has come from another URL. ``KosterMiddleware.is_allowed``, the link filter, ``scrapy robots
explain`` and ``survey``, and a crawl from the HTTP cache also use ``decide``. So does the pacer,
because a forbidden request does not wait for the turn of its host.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.states import SiteState
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.override import current
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.step import Obey, Settled
from scrapy_koster.protocol.usage import Statement
from scrapy_koster.protocol.verdict import Verdict, forbidden_spelling, permission, verdict_on


class Decision(NamedTuple):
    """Whether a URL may be fetched, with the reasons."""

    allowed: bool
    statements: tuple[Statement, ...]
    """The usage statements about the URL in the robots.txt. Empty for a URL that rules forbid."""
    verdict: Callable[[], Verdict]
    """Returns the verdict. This takes ten times as long as the decision."""


def decide(
    url: str,
    robot: str,
    state: SiteState,
    step: Settled,
    *,
    delay: Delay | None,
    config: Config,
    now: float,
) -> Decision:
    """Return the decision on *url*, a URL of the site of *state*, at the time *now*.

    *step* is the step of the site. *delay* is the delay for *robot* in the robots.txt, or None.
    Raises ParserDefectError if the parser has a defect.
    """
    facts, overrides = state.facts, current(config.policy.overrides, state.site, now)
    allows = permission(step, facts.parser, config.policy, overrides)
    forbidden = forbidden_spelling(url, robot, allows)
    statements: tuple[Statement, ...] = ()
    if forbidden is None and facts.usage is not None and isinstance(step, Obey):
        statements = facts.usage.statements(url, robot)
    is_page = not is_robots_txt(url)
    too_long = config.pace.too_long(delay) if is_page else None
    against = config.usage.disallowed(statements) if config.usage.refuses and is_page else None
    stated = against and against[1]
    verdict = partial(
        verdict_on,
        url,
        robot,
        site=state.site,
        step=step,
        parser=facts.parser,
        source=facts.source,
        policy=config.policy,
        forbidden=forbidden,
        too_long=too_long,
        overrides=overrides,
        stated=stated,
    )
    return Decision(not (forbidden or too_long or stated), statements, verdict)
