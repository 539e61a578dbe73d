"""Runs `scrapy robots`: in this process, or as a program."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from scrapy import cmdline
from scrapy.settings import Settings

from harness import forks
from harness.server import Server

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Robots = Callable[..., Ran]

_entry_points = cache(metadata.entry_points)
"""Which Scrapy looks for in all that is installed, for each command."""


@pytest.fixture
def robots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Robots:
    """Run `scrapy robots` in this process, in an empty folder, as cmdline.py runs it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cmdline, "entry_points", _entry_points)
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object, stdin: bytes = b"", **settings: Any) -> Ran:
        given_bytes = io.BufferedReader(io.BytesIO(stdin))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given_bytes))
        given = Settings({"COMMANDS_MODULE": "scrapy_koster.commands", **settings})
        with pytest.raises(SystemExit) as ended:
            cmdline.execute(["scrapy", "robots", *map(str, arguments)], given)
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ran(ended.value.code, out, err)

    return run


@pytest.fixture
def in_a_process(tmp_path: Path) -> Robots:
    """Run it in a process of its own, in a project whose settings are those given."""

    def run(*arguments: object, stdin: bytes = b"", env: Any = (), **settings: Any) -> Ran:
        settings = {"COMMANDS_MODULE": "scrapy_koster.commands"} | settings
        lines = [f"{name} = {value!r}" for name, value in settings.items()]
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = the_settings\n")
        (tmp_path / "the_settings.py").write_text("\n".join(lines))
        ran = forks.run(
            [sys.executable, "-m", "scrapy", "robots", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "ascii", **dict(env)},
            input=stdin,
        )
        # A survey tells how far it is, every five seconds: on a busy machine a short one does, too.
        told = re.sub(r"scrapy robots: \d+ of \d+ URLs, .*\n", "", ran.stderr.decode())
        return Ran(ran.returncode, ran.stdout.decode("ascii"), told)

    return run


@dataclass(frozen=True)
class Sites:
    """A server, and the command in a project that stores what it learns in a folder."""

    server: Server
    folder: Path
    in_a_process: Robots

    def run(self, *arguments: object, **settings: Any) -> Ran:
        settings["KOSTER_SQLITE_PATH"] = str(self.folder / "robots.sqlite3")
        return self.in_a_process(*arguments, **settings)


@pytest.fixture
def sites(server: Server, tmp_path: Path, in_a_process: Robots) -> Sites:
    return Sites(server, tmp_path, in_a_process)
