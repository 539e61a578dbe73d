"""``scrapy robots check | explain | cache``: the arguments, and what is run."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.crawler import Crawler
from scrapy.exceptions import UsageError
from scrapy.utils.misc import build_from_crawler
from scrapy.utils.spider import DefaultSpider

from scrapy_koster.checker.syntax import FINDINGS_LISTED
from scrapy_koster.commands import ask, cache, check, explain
from scrapy_koster.commands.arguments import add_commands
from scrapy_koster.commands.ink import Ink, ink_for
from scrapy_koster.crawl.config import Config
from scrapy_koster.crawl.robot import user_agent
from scrapy_koster.protocol.access import Copy, Obey, Pass, Refuse
from scrapy_koster.protocol.printable import escaped, printable
from scrapy_koster.protocol.robotstxt import whole_lines
from scrapy_koster.protocol.site import Site, site_of
from scrapy_koster.protocol.verdict import Source
from scrapy_koster.storage import Storage, StorageError

_READ_MAX_BYTES = 10_000_000
_MESSAGE_CHARS = 1000
_NOT_STORED = 1
_NOT_HAD = 3


class RobotsCommand(ScrapyCommand):
    """``scrapy robots``, inside of a project and outside."""

    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {"LOG_LEVEL": "WARNING"}

    def syntax(self) -> str:
        """Return what follows ``scrapy robots``."""
        return "<check|explain|cache> ..."

    def short_desc(self) -> str:
        """Return what ``scrapy`` lists."""
        return "Check a robots.txt, explain what it says of a URL, manage stored copies"

    def add_options(self, parser: ArgumentParser) -> None:
        """Add a parser for each of the commands."""
        super().add_options(parser)
        add_commands(parser)

    def process_options(self, args: list[str], opts: Namespace) -> None:
        """Take the settings from the options, and see what will be needed."""
        with _usage_errors():
            self._prepare(args, opts)

    def _prepare(self, args: list[str], opts: Namespace) -> None:
        if opts.verb is None:
            raise UsageError("say what to do: scrapy robots check, explain or cache")
        if args:
            raise UsageError(f"not understood: {' '.join(args)}; see scrapy robots {opts.verb} -h")
        opts.set = [*opts.set, *getattr(opts, "set_behind", ())]
        super().process_options(args, opts)
        if self._asks(opts):
            self.requires_crawler_process = True
            assert self.settings is not None
            self.settings.setdict(ask.QUIET, priority="cmdline")

    @staticmethod
    def _asks(opts: Namespace) -> bool:
        """Whether sites have to be asked; UsageError for a URL that names none."""
        urls: Iterable[str] = ()
        if opts.verb == "explain" and opts.robots is None:
            urls = opts.urls
        elif opts.verb == "check":
            urls = filter(_is_url, opts.files)
        return bool([_site(url) for url in urls])

    def run(self, args: list[str], opts: Namespace) -> None:  # noqa: ARG002
        """Run the command; ``exitcode`` is its answer."""
        run = {"check": self._check, "explain": self._explain, "cache": self._cache}
        ink = ink_for(sys.stdout, os.environ)
        try:
            with _usage_errors():
                for line in run[opts.verb](opts, ink):
                    _print(line, ink)
            sys.stdout.flush()
        except BrokenPipeError:
            # Who read the output has seen enough; Python would flush it at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _worse(self, status: int) -> None:
        self.exitcode = max(self.exitcode, status)

    # check

    def _check(self, opts: Namespace, ink: Ink) -> Iterator[str]:
        learnt = self._learn(name for name in opts.files if _is_url(name))
        bodies = [
            (name, _body(learnt.get(name)) if _is_url(name) else _read(name)) for name in opts.files
        ]
        least = check.SEVERITIES[opts.level]
        for name, body in bodies:
            if isinstance(body, str):
                self._worse(_NOT_HAD)
                _warn(f"{printable(name)}: {body}")
                continue
            findings = check.findings_of(body, least, None if opts.all else FINDINGS_LISTED)
            self._worse(1 if findings else 0)
            if opts.json:
                yield check.as_json(name, findings)
            else:
                yield from check.as_text(name, findings, ink)

    # explain

    def _explain(self, opts: Namespace, ink: Ink) -> Iterator[str]:
        crawler = self._crawler_of_settings()
        config = self._config(crawler)
        robot = opts.agent if opts.agent is not None else config.robot or user_agent(crawler)
        if opts.robots is None:
            learnt = self._learn(opts.urls)
        else:
            body = whole_lines(_read(opts.robots), config.max_bytes)
            learnt = {url: _given(body, url, config, crawler) for url in opts.urls}
        for number, url in enumerate(opts.urls):
            if url not in learnt:
                self._worse(_NOT_HAD)
                _warn(f"{printable(url)}: the crawl ended before its site was asked")
                continue
            explained = explain.explain(url, _site(url), robot, learnt[url], config.policy)
            self._worse(explained.status)
            if opts.json:
                yield explain.as_json(explained)
                continue
            if number:
                yield ""
            yield from explain.as_text(explained, ink)

    # cache

    def _cache(self, opts: Namespace, ink: Ink) -> Iterator[str]:
        config = self._config(self._crawler_of_settings())
        run = {"list": self._cache_list, "show": self._cache_show, "forget": self._cache_forget}
        try:
            with cache.open_storage(config) as storage:
                yield from run[opts.cache_verb](opts, storage, ink)
        except StorageError as error:
            self._worse(_NOT_HAD)
            _warn(printable(str(error), 1000))

    def _cache_list(self, opts: Namespace, storage: Storage, ink: Ink) -> Iterator[str]:
        known = list(storage.sites())
        if opts.json:
            return cache.list_as_json(known)
        return cache.list_as_text(known, ink, now=time())

    def _cache_show(self, opts: Namespace, storage: Storage, ink: Ink) -> Iterator[str]:
        found = [(site, known) for site in _sites(opts.site) if (known := storage.get(site))]
        if not found:
            self._worse(_NOT_STORED)
            _warn(f"nothing is stored of {printable(opts.site)}")
        for site, known in found:
            if opts.json:
                yield cache.show_as_json(site, known)
            else:
                yield from cache.show_as_text(site, known, ink, now=time())

    def _cache_forget(self, opts: Namespace, storage: Storage, _: Ink) -> Iterator[str]:
        if opts.all == bool(opts.sites):
            raise UsageError("name the sites to forget, or give --all")
        if opts.all:
            named = [("", [site]) for site, _ in list(storage.sites())]
        else:
            named = [(name, _sites(name)) for name in opts.sites]
        for name, sites in named:
            forgotten = [site for site in sites if storage.forget(site)]
            for site in forgotten:
                yield f"forgotten: {printable(str(site))}"
            if not forgotten:
                self._worse(_NOT_STORED)
                _warn(f"nothing is stored of {printable(name)}")

    # What the settings say.

    def _crawler_of_settings(self) -> Crawler:
        assert self.settings is not None
        return Crawler(DefaultSpider, self.settings)

    @staticmethod
    def _config(crawler: Crawler) -> Config:
        try:
            return Config.from_crawler(crawler)
        except ValueError as error:
            raise UsageError(str(error)) from None

    def _learn(self, urls: Iterable[str]) -> dict[str, ask.Learnt]:
        wanted = list(urls)
        learnt: dict[str, ask.Learnt] = {}
        if not wanted:
            return learnt
        self._config(self._crawler_of_settings())
        assert self.crawler_process is not None
        self.crawler_process.crawl(ask.AskingSpider, urls=wanted, learnt=learnt)
        self.crawler_process.start()
        return learnt


def _is_url(name: str) -> bool:
    return name.lower().startswith(("http://", "https://"))


def _site(url: str) -> Site:
    try:
        site = site_of(url)
    except ValueError as error:
        raise UsageError(str(error)) from None
    if site is None:
        raise UsageError(f"not an http or https URL: {url!r}; write https://example.com/page")
    return site


def _sites(name: str) -> list[Site]:
    try:
        return cache.sites_named(name)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(_READ_MAX_BYTES)
        with Path(name).open("rb") as file:
            return file.read(_READ_MAX_BYTES)
    except OSError as error:
        raise UsageError(
            f"cannot read {name!r}: {error.strerror}; give a file, a URL with http:// or"
            " https://, or - for standard input"
        ) from None


def _body(learnt: ask.Learnt | None) -> bytes | str:
    """Return the file that a site has, or why there is none."""
    match learnt.step if learnt else None:
        case Obey(Copy(status=status, body=body)):
            return body if 200 <= status <= 299 else f"HTTP {status}: there is no robots.txt"
        case Pass(failure) | Refuse(failure):
            return f"it cannot be retrieved ({printable(failure.reason)})"
        case _:
            return "the crawl ended before its site was asked"


def _given(body: bytes, url: str, config: Config, crawler: Crawler) -> ask.Learnt:
    """Return what a crawl would go by if *body* was the site's robots.txt."""
    now = time()
    robots_url = _site(url).robots_url
    copy = Copy(robots_url, 200, body, None, None, fetched=now, expires=now)
    parser = build_from_crawler(config.parser, crawler, body)
    return ask.Learnt(Obey(copy, now), Source.FILE, parser)


# The one way to the terminal, for text that may come from anywhere.


def _print(line: str, ink: Ink) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    print(ink.harmless(line).encode(encoding, "backslashreplace").decode(encoding))


def _warn(message: str) -> None:
    print(f"scrapy robots: {escaped(message)}", file=sys.stderr)


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Scrapy prints their messages as they are."""
    try:
        yield
    except UsageError as error:
        error.args = (printable(str(error), _MESSAGE_CHARS),)
        raise
