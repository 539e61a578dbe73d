"""Python programs that start at once: forked from a process that has imported what they import.

`Popen` and `run` are those of `subprocess` for a command that begins with `sys.executable`:
`-c CODE`, `-m MODULE` or a script, which can import what this process can. A Python that imports
Scrapy takes a second of CPU, a fork some milliseconds. For the rest it is a process as any other:
with its environment, its folder, its streams, a reactor of its own, and its death.

What looks at how Python itself starts (options, hash seeds, another tree of sources, limits of
memory) uses `subprocess`.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from harness.virtual import TIME

T = TypeVar("T")
ENDS_SECS = 240.0
"""How long a process of a test may take, on a machine that has much else to do."""
SERVER = Path(__file__).with_name("fork_server.py")

if TYPE_CHECKING:
    TextPopen = subprocess.Popen[str]
else:
    TextPopen = subprocess.Popen


class Popen(TextPopen):
    """A process that the fork server starts, and tells the end of."""

    # How subprocess starts a process and waits for it: the same in Python 3.10 to 3.14.

    def _execute_child(self, args: Any, *given: Any) -> None:
        _, preexec_fn, _, _, cwd, env, _, _, shell, *streams = given
        program, *arguments = map(str, args)
        assert program == sys.executable
        assert not shell
        assert preexec_fn is None
        request = {
            "arguments": arguments,
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
        }
        p2cread, _, _, c2pwrite, _, errwrite, *_ = streams
        its = [own if fd == -1 else fd for own, fd in enumerate((p2cread, c2pwrite, errwrite))]
        TIME.end()  # a process lives in real time, and so does who waits for it
        self._told, telling = os.pipe()
        _ask(json.dumps(request).encode(), [*its, telling])
        os.close(telling)
        self._close_pipe_fds(*streams[:6])  # type: ignore[attr-defined]  # of subprocess
        self._child_created = True
        self.pid = self._read()

    def _read(self) -> int:
        told = os.read(self._told, 4)
        assert len(told) == 4, "the fork server has ended"
        return int(struct.unpack("i", told)[0])

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        poll = select.poll()  # select() knows no descriptor past 1,023
        poll.register(self._told, select.POLLIN)
        if wait_flags and not poll.poll(0):
            return 0, 0
        status = self._read()
        os.close(self._told)
        return self.pid, status

    def _internal_poll(self, *_rest: object, **_more: object) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


def start(*arguments: object, **given: Any) -> Popen:
    """Start a Python with these arguments, and with pipes of text."""
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return Popen([sys.executable, *map(str, arguments)], **{**streams, "text": True, **given})


def run(
    command: list[Any],
    *,
    input: Any = None,  # noqa: A002
    **given: Any,
) -> subprocess.CompletedProcess[Any]:
    """As subprocess.run, with its output captured and its exit status not checked."""
    pipe = subprocess.PIPE
    stdin = subprocess.DEVNULL if input is None else pipe
    with Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, **given) as process:
        try:
            out, errors = process.communicate(input, timeout=ENDS_SECS)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def until(fact: Callable[[], T], secs: float = ENDS_SECS) -> T:
    """Wait, in real time, for what another process does; return it."""
    end = time.monotonic() + secs
    while not (found := fact()):
        assert time.monotonic() < end, f"not so after {secs} s"
        time.sleep(0.02)
    return found


def _ask(request: bytes, fds: list[int]) -> None:
    """Send it to the fork server, which is started by the first."""
    server = _server()
    socket.send_fds(server, [struct.pack("i", len(request))], fds)
    server.sendall(request)


@cache
def _server() -> socket.socket:
    """One for each process that tests: it ends when this end of the socket is closed."""
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours
