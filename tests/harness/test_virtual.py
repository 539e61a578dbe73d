"""Virtual time: waits are jumped over, what is on its way is not, and no thread is left behind."""

from __future__ import annotations

import asyncio
import threading
import time as real
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from scrapy.utils.asyncio import run_in_thread

from harness.crawling import Crawl
from harness.replies import Hang, Reply
from harness.server import Server
from harness.virtual import GRACE_SECS, HUNG_SECS, STILL_SECS, TIME, Loop, Sharer, Time, time

T = TypeVar("T")
FAR_SECS = 500.0
SOON_SECS = 30.0
"""Of the real clock: far less than what is waited for."""


@pytest.fixture(autouse=True)
def _virtual(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("crawl") and not TIME.is_virtual:
        pytest.skip("on the loop of the asyncio reactor alone")


@pytest.mark.bound(3 * FAR_SECS)
async def test_a_long_wait_is_jumped_over(crawl: Crawl, server: Server) -> None:
    began, virtual, epoch = real.monotonic(), time.monotonic(), time.time()
    site = server.site()
    site.page("/late", Reply(delay=FAR_SECS))
    result = await crawl(urls=[site.url("/late")], settings={"DOWNLOAD_TIMEOUT": 2 * FAR_SECS})
    assert result.fetched == (site.url("/late"),)
    assert FAR_SECS <= result.seconds <= time.monotonic() - virtual < FAR_SECS + 60
    assert time.time() - epoch == pytest.approx(time.monotonic() - virtual, abs=1e-3)
    assert real.monotonic() - began < SOON_SECS


@pytest.mark.parametrize(("delay", "is_fetched"), [(9.9, True), (11.1, False)])
async def test_an_answer_is_not_overtaken(
    crawl: Crawl, server: Server, delay: float, is_fetched: bool
) -> None:
    sites = [server.site() for _ in range(20)]
    for site in sites:
        site.page("/late", Reply(delay=delay))
    result = await crawl(
        urls=[site.url("/late") for site in sites],
        settings={"DOWNLOAD_TIMEOUT": 10, "RETRY_ENABLED": False},
    )
    assert len(result.fetched) == (len(sites) if is_fetched else 0)


def test_what_a_loop_sent_last_is_not_overtaken() -> None:
    """Another loop has looked meanwhile, and found nothing: it has to look once more."""
    of_time = Time()
    server, client = Loop(), Loop()
    of_time.begin()
    of_time.works(server)
    of_time.works(client)
    far = of_time.now() + FAR_SECS
    of_time.waits(client, far)
    real.sleep(2 * GRACE_SECS)
    of_time.waits(client, far)
    of_time.waits(server, far)  # until now it has sent
    assert of_time.jumps == 0
    real.sleep(2 * GRACE_SECS)
    of_time.waits(server, far)
    assert of_time.jumps == 0
    of_time.waits(client, far)
    assert of_time.jumps == 1
    for loop in (server, client):
        loop.close()


async def test_a_thread_holds_time(crawl: Crawl) -> None:
    began = TIME.now()

    def work() -> float:
        real.sleep(0.2)
        return TIME.now() - began

    assert await run_in_thread(work) < 0.001
    await crawl.sleep(10)
    assert 10 <= TIME.now() - began < 11


async def test_a_wait_for_what_never_comes_ends(crawl: Crawl, server: Server) -> None:
    site = server.site()
    site.page("/", Hang())
    running = crawl.start(urls=[site.url()], settings={"DOWNLOAD_TIMEOUT": 30})
    began = TIME.now()
    with pytest.raises(AssertionError, match="not so after"):
        await crawl.until(lambda: site.asked("/nowhere"), seconds=20)
    assert 20 <= TIME.now() - began < 21
    await running.stop()


async def test_to_wait_for_a_fact_lets_no_time_pass(crawl: Crawl, server: Server) -> None:
    site = server.site()
    running = crawl.start(urls=site.urls(50))
    began = TIME.now()
    await crawl.until(lambda: len(site.pages_asked) == 50)
    assert TIME.now() - began < 1
    await running.result()


async def test_a_condition_that_fails_is_the_failure_of_the_test(crawl: Crawl) -> None:
    number = 0

    def condition() -> bool:
        nonlocal number
        number += 1
        if number > 1:
            raise KeyError(number)
        return False

    with pytest.raises(KeyError):
        await crawl.until(condition)


# Of loops alone: in threads of their own, for that of the reactor runs in this one.


def in_a_thread(coroutine: Coroutine[Any, Any, T]) -> Future[T]:
    def run() -> None:
        loop = Loop()
        try:
            ended.set_result(loop.run_until_complete(coroutine))
        except BaseException as error:  # noqa: BLE001  # for who takes the result
            ended.set_exception(error)
        finally:
            loop.close()

    ended: Future[T] = Future()
    threading.Thread(target=run).start()
    return ended


@pytest.fixture
def virtual() -> Iterator[None]:
    TIME.begin()
    yield
    TIME.end()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Its clocks tell what a test has set."""
    machine = SimpleNamespace(secs=0.0, worked_secs=0.0, time=real.time)
    machine.monotonic = lambda: machine.secs
    machine.process_time = lambda: machine.worked_secs
    monkeypatch.setattr("harness.virtual.real", machine)
    return machine


def test_what_a_thread_is_done_with_reaches_its_loop_before_time_jumps(
    machine: SimpleNamespace,
) -> None:
    of_time, one, other = Time(), Sharer(), Sharer()
    of_time.begin()
    began = of_time.now()

    def wait() -> None:
        for loop in (one, other):
            of_time.waits(loop, began + FAR_SECS)

    other.threads = 1
    for _ in range(3):
        wait()
        machine.secs += 2 * GRACE_SECS
    wait()
    other.threads = 0
    wait()
    assert of_time.now() == began
    machine.secs += 2 * GRACE_SECS
    wait()
    assert of_time.now() >= began + FAR_SECS


def test_work_holds_time_however_long_others_keep_the_processor(
    machine: SimpleNamespace,
) -> None:
    of_time = Time()
    of_time.begin()
    began = of_time.now()
    machine.secs, machine.worked_secs = HUNG_SECS, STILL_SECS
    assert of_time.now() == began
    machine.worked_secs += 1.0  # it works without end
    assert of_time.now() == began + 1.0
    machine.secs += 2.0  # it hangs
    assert of_time.now() == began + 2.0
    of_time.end()
    machine.secs += 1.0
    assert of_time.now() == began + 3.0


def test_work_without_end_does_not_hold_time(virtual: None) -> None:
    async def work() -> None:
        end = TIME.now() + 0.05
        while TIME.now() < end:
            await asyncio.sleep(0)

    began = real.monotonic()
    in_a_thread(work()).result(SOON_SECS)
    assert real.monotonic() - began >= STILL_SECS


@pytest.mark.bound(3 * FAR_SECS)
async def test_one_that_works_holds_the_time_of_one_that_waits(crawl: Crawl) -> None:
    working, enough = threading.Event(), threading.Event()

    async def work() -> None:
        working.set()
        real.sleep(0.2)
        enough.set()

    worker = in_a_thread(work())
    assert working.wait(SOON_SECS)
    await crawl.sleep(FAR_SECS)
    assert enough.is_set()
    worker.result(SOON_SECS)
