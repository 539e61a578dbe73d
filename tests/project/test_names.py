"""What the package offers, by which names, and what an import of it loads."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

from harness import forks
from scrapy.utils.misc import load_object

import scrapy_koster
from scrapy_koster.crawl.config import DEFAULTS

NAMES = """
    Addon DeferringScheduler Ground KosterMiddleware KosterRobotParser LinkFilterMiddleware
    Preference RobotsForbidden RobotsDownloader RobotsMetaMiddleware RobotsReport
    RobotsSitemapMixin RobotsUnavailable Rfc9309RobotParser SiteStatus Statement
    StrictestRobotParser Usage UsageMiddleware Verdict storage.CachedRobots storage.Claimed
    storage.Claiming storage.FetchFailure storage.Pacing storage.Pruning storage.Setting
    storage.Site storage.Storage storage.StorageError storage.contract.checks storage.decoded
    storage.encoded storage.lease_left storage.site_named storage.supersedes
    storage.memory.MemoryStorage storage.redis.RedisStorage storage.sqlite.SQLiteStorage
"""
PROMISED = [f"scrapy_koster.{name}" for name in NAMES.split()]


def test_the_package_offers_what_is_promised() -> None:
    for path in PROMISED:
        assert load_object(path).__name__ == path.rpartition(".")[2]
    direct = {path.removeprefix("scrapy_koster.") for path in PROMISED}
    assert set(scrapy_koster.__all__) == {name for name in direct if "." not in name}
    assert scrapy_koster.__version__ == version("scrapy-koster")
    paths = {str(value) for value in DEFAULTS.values() if str(value).startswith("scrapy_koster")}
    assert paths <= {*PROMISED}


IMPORTS = """
import sys
# A base install: packages of the extras cannot be imported.
extras = ("crawleruseragents", "jinja2", "markupsafe", "redis", "warcio")
sys.modules.update(dict.fromkeys(extras))
import scrapy_koster
assert sum(name.startswith("scrapy_koster") for name in sys.modules) <= 60
assert not [name for name in scrapy_koster.__all__ if name not in dir(scrapy_koster)]
from scrapy_koster import *
from scrapy_koster import storage
assert not [name for name in scrapy_koster.__all__ if name not in globals()]
assert not {"scrapy_koster.commands", "scrapy_koster.checker"} & set(sys.modules)
import scrapy_koster.commands.robots  # as `scrapy` does before it runs any command
assert not {"scrapy_koster.audit", "scrapy_koster.checker"} & set(sys.modules)
import scrapy_koster.commands.subcommands
assert "twisted.internet.reactor" not in sys.modules
"""


def test_a_crawl_loads_no_command_and_no_command_installs_a_reactor() -> None:
    subprocess.run([sys.executable, "-c", IMPORTS], check=True, timeout=forks.ENDS_SECS)
