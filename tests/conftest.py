"""Runs coroutine tests on whatever reactor there is, or on none.

It sees to it that they end and leave nothing behind.
The fixtures are `server` (server.py) and `crawl` (crawling.py).
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import virtual
from harness.browser import browser, opened  # noqa: F401  # fixtures
from harness.commands import in_a_process, robots, sites  # noqa: F401
from harness.crawling import Crawl
from harness.loops import BareLoop, Loop, ReactorLoop
from harness.server import Server, Site
from harness.sizes import EXAMPLES, MANY_EXAMPLES
from hypothesis import settings

BOUND_SECS = 180.0
STOP_SECS = 15.0
LOOP = pytest.StashKey[Loop]()

MARKERS = (
    "bound(seconds): how long a coroutine test may take, in place of 180 seconds",
    "crawl: runs on each kind of loop, see the Makefile; coroutine tests have it",
    "long: takes so long that one kind of reactor, and one Python, have to do",
    "slow: a unit test that takes so long that make test-quick is without it",
    "timed: measures how fast something is, and so runs by itself, once",
    "real_time: its crawls wait in real time, see harness/virtual.py",
    "browser: needs a Chromium, and no other loop than that of Playwright",
    "beside(package, part): what the test is about, see tests/ecosystem",
)

# How long an example takes says more of the machine than of what is tested.
settings.register_profile("some", deadline=None, max_examples=EXAMPLES)
settings.register_profile("many", deadline=None, max_examples=MANY_EXAMPLES)
settings.load_profile("some")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    parser.addoption("--many", action="store_true", help="so many examples of each property")
    if not pluginmanager.hasplugin("twisted"):
        parser.addoption("--reactor", help="not used: there is no reactor without pytest-twisted")


@pytest.hookimpl(tryfirst=True)  # before pytest-twisted installs one
def pytest_cmdline_main(config: pytest.Config) -> None:
    if config.pluginmanager.hasplugin("twisted") and config.getoption("reactor") == "asyncio":
        virtual.install()


@pytest.hookimpl(trylast=True)  # after pytest-twisted has installed its reactor
def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if config.getoption("many"):
        settings.load_profile("many")
    has_reactor = config.pluginmanager.hasplugin("twisted")
    config.stash[LOOP] = ReactorLoop() if has_reactor else BareLoop()


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[LOOP].close()


def pytest_report_header(config: pytest.Config) -> str:
    return f"loop: {config.stash[LOOP].name}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "random_crawls" not in item.nodeid)  # which takes the longest
    for item in items:
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.add_marker("crawl")


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Collect no garbage meanwhile: what is made stays, and to look at it takes long."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What there is now stays: the collections after each test need not look at it again."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    if inspect.iscoroutinefunction(pyfuncitem.obj):
        pyfuncitem.config.stash[LOOP].run(
            lambda: pyfuncitem.obj(**arguments), bound_secs(pyfuncitem)
        )
    else:
        pyfuncitem.obj(**arguments)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if is_virtual(item):
        virtual.TIME.begin()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    virtual.TIME.end()


def is_virtual(item: pytest.Item) -> bool:
    """Whether its waits are jumped over: see harness/virtual.py."""
    return (
        item.config.stash[LOOP].is_virtual
        and item.get_closest_marker("crawl") is not None
        and item.get_closest_marker("real_time") is None
    )


def bound_secs(item: pytest.Item) -> float:
    marker = item.get_closest_marker("bound")
    return float(marker.args[0]) if marker else BOUND_SECS


@pytest.fixture
def loop(pytestconfig: pytest.Config) -> Loop:
    return pytestconfig.stash[LOOP]


@pytest.fixture
def server(crawl: Crawl) -> Iterator[Server]:  # closed before the crawls that wait for it are
    with Server() as server:
        yield server
    assert not server.errors


@pytest.fixture
def site(server: Server) -> Site:
    """One of which a part is forbidden."""
    site = server.site()
    site.robots = "User-agent: *\nDisallow: /private\n"
    return site


@pytest.fixture
def crawl(tmp_path: Path, loop: Loop) -> Iterator[Crawl]:
    crawl = Crawl(tmp_path)
    yield crawl
    if crawl.unfinished():
        loop.run(crawl.stop_all, STOP_SECS)
