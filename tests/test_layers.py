"""The layers of the package, proved by breaking them: the linter must object.

Each row is a module of the package and a line that may not, or may, stand in it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ruff")

ROOT = Path(__file__).parent.parent
CORE = (
    "site",
    "robotstxt",
    "freshness",
    "access",
    "metatags",
    "robotsmeta",
    "verdict",
    "printable",
    "nametoken",
    "syntax",
    "checks",
)
FOREIGN_TO_THE_CORE = (
    "import scrapy",
    "from scrapy.http import Request",
    "from twisted.internet import defer",
    "import asyncio",
    "import logging",
    "import time",
    "from time import monotonic",
    "import datetime\nnow = datetime.datetime.now()",
    "from datetime import datetime\nnow = datetime.now()",
    "import random",
    "import sqlite3",
    "import socket",
    "import os",
    "import os.path",
    "from pathlib import Path",
    "from urllib.request import urlopen",
    "import threading",
    "open('x')",
    "print('x')",
    "from scrapy_koster import Addon",
    "from scrapy_koster.storage import Storage",
    "from scrapy_koster.storage.sqlite import SQLiteStorage",
    "from scrapy_koster import keeper",
    "import scrapy_koster.config",
    "from scrapy_koster.commands import robots",
    "from .keeper import Keeper",
    "def f():\n    import time",
)
FOREIGN_TO_STORAGE = (
    "import scrapy",
    "from twisted.internet import defer",
    "import asyncio",
    "import logging",
    "import pickle",
    "from scrapy_koster import KosterMiddleware",
    "from scrapy_koster.keeper import Keeper",
    "from scrapy_koster.commands import robots",
)
ALLOWED = (
    ("site", "import re"),
    ("site", "from datetime import datetime, timezone"),
    ("access", "from scrapy_koster.site import Site"),
    ("storage/sqlite", "import sqlite3, threading, pathlib, contextlib"),
    ("storage/sqlite", "from scrapy_koster.access import Copy"),
    ("keeper", "import logging, time, scrapy"),
    ("keeper", "from scrapy_koster.storage import Storage"),
    ("commands/robots", "from scrapy_koster.keeper import Keeper"),
    ("commands/robots", "from scrapy_koster.commands import output"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The linter's configuration, and nothing to lint."""
    folder = tmp_path_factory.mktemp("project")
    for path in ("pyproject.toml", "scrapy_koster/storage/ruff.toml"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


def objections(project: Path, module: str, code: str) -> str:
    file = project / "scrapy_koster" / f"{module}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(code + "\n")
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--no-cache",
        "--quiet",
        "--select",
        "PTH,T20,TID",
    ]
    run = subprocess.run(
        [*command, "--output-format", "concise", str(file)],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    file.unlink()
    assert run.returncode in (0, 1), run.stderr
    return run.stdout


@pytest.mark.parametrize("code", FOREIGN_TO_THE_CORE)
def test_the_core_may_not(project: Path, code: str) -> None:
    assert objections(project, "site", code)


@pytest.mark.parametrize("module", CORE)
def test_all_of_the_core_is_guarded(project: Path, module: str) -> None:
    assert (ROOT / "scrapy_koster" / f"{module}.py").exists()
    assert "TID251" in objections(project, module, "import scrapy")


@pytest.mark.parametrize("layer", ["site", "storage/memory"])
def test_no_module_of_a_higher_layer_has_been_forgotten(project: Path, layer: str) -> None:
    modules = {path.stem for path in (ROOT / "scrapy_koster").glob("*.py")} - {"__init__", *CORE}
    code = "\n".join(f"import scrapy_koster.{module}" for module in modules)
    told = objections(project, layer, code)
    unbanned = {module for module in modules if f"`scrapy_koster.{module}` is banned" not in told}
    assert not unbanned, "ban them in pyproject.toml and storage/ruff.toml, or name them in CORE"


@pytest.mark.parametrize("code", FOREIGN_TO_STORAGE)
@pytest.mark.parametrize("module", ["storage/__init__", "storage/memory", "storage/sqlite"])
def test_storage_may_not(project: Path, module: str, code: str) -> None:
    assert "TID25" in objections(project, module, code)


@pytest.mark.parametrize("module", ["keeper", "middleware", "addon", "__init__"])
def test_nobody_imports_the_commands(project: Path, module: str) -> None:
    assert "TID253" in objections(project, module, "from scrapy_koster.commands import robots")


@pytest.mark.parametrize(("module", "code"), ALLOWED)
def test_what_is_allowed(project: Path, module: str, code: str) -> None:
    assert objections(project, module, code) == ""
