"""A program of somebody else, run as a server on 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from harness.forks import until

BOUND_SECS = 20.0


def need(program: str, install: str) -> str:
    """Return the path of *program*. The test is skipped if it is not installed."""
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"no {program}: {install}")
    return found


def run(*command: str, cwd: Path | None = None, ended: tuple[int, ...] = (0,)) -> None:
    """Run a program to its end. *ended* are the exit statuses that are right."""
    ran = subprocess.run(command, cwd=cwd, capture_output=True, timeout=BOUND_SECS, check=False)
    assert ran.returncode in ended, ran.stderr


@contextmanager
def running(command: list[str], folder: Path, port: int) -> Iterator[None]:
    """Run a server in *folder*, from when it listens until it has ended."""
    env = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, env=env)
        try:
            until(lambda: process.poll() is not None or _listens(port), BOUND_SECS)
            assert process.poll() is None, _said(folder)
            yield
        finally:
            process.terminate()
            try:
                process.wait(BOUND_SECS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(BOUND_SECS)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def _said(folder: Path) -> str:
    """Return the errors of a server."""
    logs = (folder / name for name in ("stderr", "error.log"))
    return "".join(log.read_text() for log in logs if log.exists())
