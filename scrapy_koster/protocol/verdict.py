"""The answer to "may this URL be fetched?", with the reasons."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Any

from scrapy_koster.protocol.access import CachedRobots, CacheEntry, FetchFailure
from scrapy_koster.protocol.defect import Permission, bools_of, guarded, returned
from scrapy_koster.protocol.delay import Delay
from scrapy_koster.protocol.html_page import page_in_place
from scrapy_koster.protocol.line import Line
from scrapy_koster.protocol.nametoken import name_token, names_of
from scrapy_koster.protocol.override import Override, choice
from scrapy_koster.protocol.path import is_robots_txt
from scrapy_koster.protocol.policy import Policy, Restricted
from scrapy_koster.protocol.printable import printable
from scrapy_koster.protocol.reading import Reading
from scrapy_koster.protocol.rewriting import sent_as
from scrapy_koster.protocol.ruling import Ruling, Standard
from scrapy_koster.protocol.site import Site
from scrapy_koster.protocol.site_status import Ground
from scrapy_koster.protocol.step import Obey, Refuse, Settled, status_of_step
from scrapy_koster.protocol.usage import Statement
from scrapy_koster.protocol.wording import (
    TEXT_CHARS,
    because_of,
    lines_to_dict,
    ruling_to_dict,
    utc,
)

# With the reason for giving a site up, see ``step.given_up``.
_REASON_CHARS = 500


class Source(Enum):
    """The origin of the copy or failure that decided."""

    FETCHED = "fetched"
    MEMORY = "memory"
    STORAGE = "storage"
    FILE = "file"
    """Given by hand: `scrapy robots explain --robots FILE`."""


def permission(
    step: Settled, parser: Any, policy: Policy, overrides: Sequence[Override] = ()
) -> Permission:
    """Return the function that decides on the URLs of a site.

    *parser* is None unless the rules of a copy decide. Then the returned function calls ``allowed``
    of *parser*, and raises ParserDefectError if ``allowed`` fails or does not return a bool.
    *overrides* are the current overrides of the site.
    """
    if overrides and not isinstance(step, Refuse):  # nothing opens a site that is refused
        by_site = permission(step, parser, policy)
        is_closed = not status_of_step(step, policy).may_be_overridden

        def allows(url: str, robot: str | bytes) -> bool:
            chosen = choice(url, overrides, is_closed=is_closed)
            return by_site(url, robot) if chosen is None else chosen[0]

        return allows
    if parser is not None and isinstance(step, Obey):
        return bools_of(parser)  # before ``status_of_step``, which may search the whole file
    status = status_of_step(step, policy)
    # Rules without a parser, which would be a defect of ours, allow nothing.
    is_closed = status.is_closed or status.ground is Ground.RULE
    return lambda url, _robot: not is_closed or is_robots_txt(url)


def forbidden_spelling(url: str, robot: str | bytes, allows: Permission) -> str | None:
    """Return the first forbidden spelling in which *url* may be sent, or None."""
    for spelling in sent_as(url):
        if not allows(spelling, robot):
            return spelling
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Ruling):
    """Whether a robot may fetch a URL, and why: the ruling, and the facts about the site.

    ``str(verdict)`` is safe to print. The fields may have unsafe text from the network.
    """

    url: str
    site: Site
    robot: str
    """The robot's name in lower case. Of several names, the name that decided, or the first."""
    ground: Ground
    known: CachedRobots | FetchFailure
    """The copy of the robots.txt, or the failure to get a copy."""
    source: Source
    names: tuple[str, ...] = ()
    """The names of a robot with several names, the preferred name first; otherwise empty."""
    delay: Delay | None = None
    """The delay that forbids the URL, because it is too long, or None."""
    stated: Statement | None = None
    """The statement that forbids the URL (KOSTER_USAGE_PURPOSES), or None."""
    spelling: str | None = None
    """The forbidden spelling of ``url``, if it differs from ``url``, or None."""
    is_explained: bool = True
    """False if the parser has no method ``ruling``, and rules or a delay decided.

    If rules decided, ``section`` is then the name of the parser's class.
    """
    rfc9309: Ruling | None = None
    """The ruling of RFC 9309, if a line forbids a URL that RFC 9309 would allow; otherwise None."""
    override: Override | None = None
    """The entry of KOSTER_OVERRIDES that decided, or None.

    With an override, ``rule`` is the site's opposite rule, if the site has one.
    """

    @property
    def ruling(self) -> Ruling:
        """This verdict, as a Ruling."""
        return self

    @property
    def line(self) -> int | None:
        """Line number of ``rule``, from 1, or None."""
        return self.rule.number if self.rule else None

    @property
    def robots_url(self) -> str:
        """The URL of the copy, after redirects; without a copy, the site's /robots.txt."""
        return self.known.url if isinstance(self.known, CachedRobots) else self.site.robots_url

    @property
    def digest(self) -> str | None:
        """SHA-256 of the body of the copy as received, or None without a copy."""
        return self.known.digest if isinstance(self.known, CachedRobots) else None

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as a dict for JSON: texts made printable, times in UTC."""
        copy = self.known if isinstance(self.known, CachedRobots) else None
        failure = self.known if isinstance(self.known, FetchFailure) else None
        dated = copy is not None and self.source is not Source.FILE
        return {
            "url": printable(self.url, TEXT_CHARS),
            "sent_as": printable(self.spelling, TEXT_CHARS) if self.spelling else None,
            "site": str(self.site),
            "robot": self.robot,
            "names": list(self.names),
            "allowed": self.allowed,
            "ground": self.ground.value,
            "standard": self.standard.value if self.is_explained else None,
            "section": self.section,
            "misspelt": self.is_misspelt,
            "because": self.because(),
            **lines_to_dict(self),
            "crawl_delay": self.delay.to_dict() if self.delay else None,
            "also": ruling_to_dict(self.also, self.robot) if self.also else None,
            "robots_url": printable(self.robots_url, TEXT_CHARS),
            "status": copy.status if copy else None,
            "digest": printable(self.digest) if self.digest else None,
            "record_id": printable(copy.record_id) if copy and copy.record_id else None,
            "fetched": utc(copy.fetched) if copy and dated else None,
            "expires": utc(copy.expires) if copy and dated else None,
            "override": self.override.to_dict() if self.override else None,
            "reason": printable(failure.reason, _REASON_CHARS) if failure else None,
            "retry": utc(failure.retry) if failure else None,
            "source": self.source.value,
        }

    def because(self) -> str:
        """Return the reason in words, safe to print."""
        if self.override is not None:
            return self.override.because(self)
        if self.delay is not None:
            return self.delay.because()
        if self.stated is not None:
            return f"{self.stated}, which disallows a use in KOSTER_USAGE_PURPOSES"
        if not self.is_explained:
            return f"as {printable(self.section)} reads it, which names no line"
        if self.ground is Ground.RULE:
            several = f", as {self.robot} of {', '.join(self.names)}" if self.names else ""
            return f"{because_of(self, self.robot, self.rfc9309)}{several}"
        return self._without_rules(self.known)

    def _without_rules(self, copy: CachedRobots | FetchFailure) -> str:
        """Return in words the effect of a failure, or of an answer without rules."""
        if isinstance(copy, FetchFailure):
            return f"{printable(self.robots_url)} {self._not_fetched(copy)}"
        what, effect, setting = "", "closes", "KOSTER_RESTRICTED"
        if self.ground is Ground.MISSING:
            what, setting = " without a record" if copy.status < 300 else "", "KOSTER_MISSING"
        elif self.ground is Ground.HTML:
            what, setting = f" with {page_in_place(copy.body)}", "KOSTER_HTML_ROBOTSTXT"
        elif self.ground is Ground.UNRESTRICTED:
            effect, setting = "opens", setting if copy.status in (401, 403) else ""
        by = f" ({setting})" if setting else ""
        return f"its robots.txt answered {copy.status}{what}, which {effect} the site{by}"

    def _not_fetched(self, failure: FetchFailure) -> str:
        """Return in words when, how often and why the robots.txt could not be fetched."""
        if not failure.attempts:  # the crawl has not tried
            return f"was not fetched ({printable(failure.reason, _REASON_CHARS)})"
        tries = "1 attempt" if failure.attempts == 1 else f"{failure.attempts} attempts"
        by = " by another process" if self.source is Source.STORAGE else ""
        when = f"last at {utc(failure.asked)}{by}"
        return (
            f"could not be fetched in {tries} ({printable(failure.reason, _REASON_CHARS)}), {when}"
        )

    def __repr__(self) -> str:
        """Return a short, printable text (section 6), shown by Twisted's Failure in an errback."""
        return f"<{printable(self.url)}: {self}>"

    def __str__(self) -> str:
        """Return one line with the decision, the robots.txt or override, and the reason."""
        may = "allowed" if self.allowed else "forbidden"
        if isinstance(self.known, FetchFailure):
            return f"{'allowed' if self.allowed else 'refused'}: {self.because()}"
        if self.override is not None:
            return f"{may} by {self.because()}"
        return f"{may} by {printable(self.robots_url)}: {self.because()}"


def verdict_on(
    url: str,
    robot: str | bytes,
    *,
    site: Site,
    step: Settled,
    parser: Any,
    source: Source,
    policy: Policy,
    forbidden: str | None,
    too_long: Delay | None = None,
    overrides: Sequence[Override] = (),
    stated: Statement | None = None,
) -> Verdict:
    """Return the verdict on *url*, a URL of *site*.

    *forbidden*, the result of ``forbidden_spelling``, decides; the rules are read only to find the
    line. If *forbidden* is None, *too_long* (a delay) or *stated* (a statement that disallows a
    purpose) forbids the URL. Without these three, the URL is allowed. *overrides* are the current
    overrides of the site. Raises ParserDefectError if a method of the parser fails or returns a
    wrong type.
    """
    status = status_of_step(step, policy)
    reader = parser if status.ground is Ground.RULE else None
    delay = too_long if forbidden is None else None
    stated = stated if forbidden is None and delay is None else None
    known = step.copy if isinstance(step, Obey) else step.failure
    override = chosen = None
    if delay is not None:
        ground, ruling = Ground.DELAY, _ruling_by(delay.line, policy)
    elif stated is not None:
        ground, ruling = Ground.USAGE, _ruling_by(stated.as_line(), policy)
    else:
        decided = forbidden or url
        if overrides and not isinstance(step, Refuse):
            by_site = permission(step, parser, policy)
            decided = forbidden or forbidden_spelling(url, robot, by_site) or url
            chosen = choice(decided, overrides, is_closed=not status.may_be_overridden)
            # An override that agrees with the site has no effect, and is not named.
            if chosen and by_site(decided, robot) is bool(forbidden):
                override = chosen[1]
        ground = Ground.OVERRIDE if override else status.ground
        if reader is None:
            ruling = _without_rules(known, policy, allowed=not forbidden)
        else:
            ruling = _ruling(reader, decided, robot, allowed=not forbidden)
    # A disallowing override, or a delay, would refuse the URL by RFC 9309, too.
    is_ours = ruling.rule and isinstance(parser, Reading) and not (chosen or too_long)
    return Verdict(
        **{field.name: getattr(ruling, field.name) for field in fields(ruling)},
        url=url,
        site=site,
        robot=ruling.name or name_token(robot),
        names=names if len(names := names_of(robot)) > 1 else (),
        ground=ground,
        known=known,
        source=source,
        delay=delay,
        stated=stated,
        spelling=None if forbidden == url else forbidden,
        is_explained=bool(stated or not (reader or delay)) or hasattr(parser, "ruling"),
        rfc9309=parser.allowed_by_rfc9309(url, robot) if forbidden and is_ours else None,
        override=override,
    )


def _ruling_by(line: Line | None, policy: Policy) -> Ruling:
    # An extension of the draft, or a record that "is not part of the robots.txt protocol".
    section = "3.2" if policy.standard is Standard.DRAFT else "2.2.4"
    return Ruling(allowed=False, section=section, record=None, rule=line, standard=policy.standard)


def _without_rules(known: CacheEntry, policy: Policy, *, allowed: bool) -> Ruling:
    """Return the ruling for a failure, or for an answer without rules."""
    standard, section = policy.standard, "2.3.1.4"
    if isinstance(known, CachedRobots):
        section = "2.3.1.1" if known.status < 300 else "2.3.1.3"
        if known.status in (401, 403):
            is_open = policy.restricted is Restricted.ALLOW
            standard = Standard.RFC_9309 if is_open else Standard.DRAFT
    section = "3.1" if standard is Standard.DRAFT else section
    return Ruling(allowed, section, record=None, rule=None, standard=standard)


def _ruling(parser: Any, url: str, robot: str | bytes, *, allowed: bool) -> Ruling:
    """Return the ruling of *parser* for the decision *allowed*."""
    if not hasattr(parser, "ruling"):  # a parser that names no line
        return Ruling(allowed, type(parser).__name__, record=None, rule=None)
    ruling = guarded(parser, "ruling", lambda: parser.ruling(url, robot))
    if not isinstance(ruling, Ruling):
        raise returned(parser, "ruling", ruling, "a Ruling")
    # ``ruling`` of a project's own parser may contradict ``allowed``, which has decided.
    return ruling if ruling.allowed is allowed else replace(ruling, allowed=allowed)
