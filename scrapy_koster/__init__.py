"""The robots exclusion protocol of Martijn Koster's 1996 draft, for Scrapy."""

from scrapy_koster.addon import Addon
from scrapy_koster.exceptions import RobotsForbidden, RobotsUnavailable
from scrapy_koster.metamiddleware import RobotsMetaMiddleware
from scrapy_koster.middleware import KosterMiddleware
from scrapy_koster.parser import KosterRobotParser
from scrapy_koster.scheduler import DeferringScheduler
from scrapy_koster.strictest import StrictestRobotParser

__all__ = [
    "Addon",
    "DeferringScheduler",
    "KosterMiddleware",
    "KosterRobotParser",
    "RobotsForbidden",
    "RobotsMetaMiddleware",
    "RobotsUnavailable",
    "StrictestRobotParser",
]
