"""Runs Scrapy's own tests with this add-on in Scrapy's default settings: `make test-scrapy`.

The tests come with the source distribution of the installed Scrapy. They run in a copy of it whose
default settings enable the add-on. A test that fails there twice runs in two more copies: without
the add-on, and with Scrapy's own robots.txt middleware. If it passes in both, it is a difference,
and scrapys_own.md has to give the reason. The run fails for a difference without a reason, and for
a reason without a difference.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from configparser import ConfigParser
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from scrapy_koster.protocol.access import CachedRobots
from scrapy_koster.storage.memory import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy_koster.protocol.access import CacheEntry
    from scrapy_koster.protocol.site import Site

REASONS = Path(__file__).with_suffix(".md")
FOLDER = Path(__file__).parents[1] / "build" / "scrapys-own"
PASSES_MIN = 900
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
OPTIONS = (
    "--quiet",
    f"--numprocesses={os.cpu_count()}",
    "--timeout=120",
    "--basetemp=temporary",
    "--junitxml=results.xml",
    "-W=ignore::pytest.PytestDeprecationWarning",  # of a pytest that is newer than this Scrapy
)

FILES = (
    "test_addons.py",
    "test_closespider.py",
    "test_command_crawl.py",
    "test_command_fetch.py",
    "test_command_runspider.py",
    "test_command_shell.py",
    "test_crawl.py",
    "test_crawler.py",
    "test_downloadermiddleware*.py",
    "test_engine*.py",
    "test_pipeline*.py",
    "test_request_attribute_binding.py",
    "test_request_cb_kwargs.py",
    "test_request_left.py",
    "test_scheduler*.py",
    "test_signals.py",
    "test_spider_*.py",
    "test_spidermiddleware*.py",
)
DEFAULT_SETTINGS = {
    "addon": """
ADDONS = {"scrapy_koster.Addon": 500}
KOSTER_STORAGE = "scrapys_own.WithoutNetwork"
KOSTER_IDLE_LIMIT_SECS = 1  # for tests of sites that cannot be reached
""",
    "nothing": "",
    "scrapys": "\nROBOTSTXT_OBEY = True\n",
}


class WithoutNetwork(MemoryStorage):
    """Has the copy of an example.com without a robots.txt: tests use its pages and never send."""

    def get(self, site: Site) -> CacheEntry | None:
        """Return what is known of *site*."""
        if site.host != "example.com":
            return super().get(site)
        now = time.time()
        return CachedRobots(site.robots_url, 404, b"", None, None, now, now + 3600)


def main() -> None:
    """Run the tests in the three copies, and compare."""
    source = download(version("scrapy"))
    for name, settings in DEFAULT_SETTINGS.items():
        unpack(source, FOLDER / name, settings)
    install(FOLDER / "nothing" / "tox.ini")
    paths = {path for each in FILES for path in (FOLDER / "addon/tests").glob(each)}
    once = failures("addon", {f"tests/{path.name}" for path in paths}, passes=PASSES_MIN)
    twice = failures("addon", once)
    different = twice - failures("nothing", twice) - failures("scrapys", twice)
    explained = set(re.findall(r"^\| `(tests/.+?)` \|", REASONS.read_text("utf-8"), re.MULTILINE))
    print(f"Differences from Scrapy: {len(different)}", *sorted(different), sep="\n  ")
    unexplained = different - explained
    unexplained &= failures("addon", unexplained, tracebacks="short")
    if unexplained:
        sys.exit(f"Not in {REASONS.name}: {', '.join(sorted(unexplained))}")
    if gone := explained - different:
        sys.exit(f"In {REASONS.name}, and no difference: {', '.join(sorted(gone))}")


def download(scrapy: str) -> Path:
    """Return the source distribution of this version of Scrapy, downloaded once."""
    source = FOLDER / f"scrapy-{scrapy}.tar.gz"
    if not source.exists():
        what = ("--no-deps", "--no-binary=scrapy", f"--dest={FOLDER}", f"scrapy=={scrapy}")
        subprocess.run([*PIP, "download", *what], check=True)
    return source


def unpack(source: Path, copy: Path, settings: str) -> None:
    """Unpack *source* into the folder *copy*, and append *settings* to Scrapy's defaults."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.unpack_archive(source, FOLDER)
    (FOLDER / source.name.removesuffix(".tar.gz")).rename(copy)
    with (copy / "scrapy/settings/default_settings.py").open("a", encoding="utf-8") as defaults:
        defaults.write(settings)
    shutil.copy(__file__, copy)  # for WithoutNetwork
    # A test of a command gives it 15 seconds, whatever else the machine has to do.
    commands = copy / "tests/utils/cmdline.py"
    if commands.exists():
        patient = commands.read_text("utf-8").replace("timeout=15,", "timeout=100,")
        commands.write_text(patient, "utf-8")


def install(tox: Path) -> None:
    """Install the packages that Scrapy's tests need."""
    config = ConfigParser(interpolation=None)
    config.read(tox, "utf-8")
    needed = tox.with_name("needed.txt")
    needed.write_text(config["test-requirements"]["deps"], "utf-8")
    subprocess.run([*PIP, "install", "-r", needed, "Pillow"], check=True)


def failures(
    copy: str, tests: Collection[str], *, passes: int = 0, tracebacks: str = "no"
) -> set[str]:
    """Run *tests* in a copy, and return those that fail. At least *passes* tests have to pass."""
    if not tests:
        return set()
    folder = FOLDER / copy
    (folder / "selected.txt").write_text("\n".join(sorted(tests)), "utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, f"--tb={tracebacks}", "@selected.txt"],
        stdout=subprocess.DEVNULL if tracebacks == "no" else None,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""},
        check=False,
    )
    if ran.returncode not in (0, 1):  # pytest: all tests passed, some tests failed
        sys.exit(f"pytest could not run the tests in {folder}.")
    counts = ElementTree.parse(folder / "results.xml").getroot()[0].attrib
    failed = sum(int(counts[each]) for each in ("failures", "errors", "skipped"))
    if int(counts["tests"]) - failed < passes:
        sys.exit(f"Fewer than {passes} tests pass in {folder}.")
    last_failed = folder / ".pytest_cache/v/cache/lastfailed"
    return set(json.loads(last_failed.read_text("utf-8"))) if last_failed.exists() else set()


if __name__ == "__main__":
    main()
