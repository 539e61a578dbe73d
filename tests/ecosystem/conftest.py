"""Notes which tests with the mark `beside` have passed, and with which versions."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from ecosystem import page

HERE = Path(__file__).parent
# Their warnings are theirs to mend; those that name ours are not.
WARNINGS = ("ignore", "error:.*scrapy_koster")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-page", action="store_true", help="write docs/ecosystem.md anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real_time)  # what is theirs has clocks of its own
            for warning in WARNINGS:
                item.add_marker(pytest.mark.filterwarnings(warning))
        if mark := item.get_closest_marker("beside"):
            item.user_properties.append(("beside", mark.args[0]))


class Notes:
    """What ran."""

    def __init__(self) -> None:
        self.ran: dict[str, str] = {}
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        package = dict(report.user_properties).get("beside")
        name = report.nodeid.rpartition("::")[2].partition("[")[0]
        if not report.passed:
            self.failed.add(name)
        elif report.when == "call" and package is not None:
            self.ran[name] = seen_with(str(package))

    def pytest_sessionfinish(self) -> None:
        page.write({name: seen for name, seen in self.ran.items() if name not in self.failed})


def seen_with(package: str) -> str:
    scrapy = f"Scrapy {version('scrapy')}"
    return scrapy if package == "Scrapy" else f"{version(package)}, {scrapy}"


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--write-page"):
        config.pluginmanager.register(Notes())
