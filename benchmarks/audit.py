"""What `scrapy robots audit` makes of logs: lines a second, and memory.

GoAccess, if it is installed, reads the same logs side by side.

python benchmarks audit                          the tables
python benchmarks/audit.py FILE --gb 10          a log of this size, to be audited
python benchmarks/audit.py FILE --gb 2 --hostile with names, paths and clients that never repeat
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from time import gmtime, strftime
from typing import Any

from report import Table

ROBOTS = """\
User-agent: googlebot
Disallow: /search

User-agent: *
Crawl-delay: 2
Disallow: /search
Disallow: /private/
Disallow: /*.json$
Allow: /
"""
BROWSER = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/{}.0.0.0 Safari/537.36"
)
CRAWLERS = (
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)",
    "FigTree/0.1 (+http://www.fict.org/)",
)
GOALS = {"combined": 400_000, "gz": 300_000, "json": 150_000}
LINES = 1_000_000
GOACCESS = {"combined": "COMBINED", "json": "CADDY", "hostile": "COMBINED"}
"""What GoAccess calls the format of a log. It reads gz only through another program."""


def combined(secs: int, client: str, path: str, agent: str) -> str:
    """One line, as Apache and nginx have it."""
    when = strftime("%d/%b/%Y:%H:%M:%S +0000", gmtime(secs))
    return (
        f'{client} - - [{when}] "GET {path} HTTP/1.1" 200 5120 "https://www.fict.org/" "{agent}"\n'
    )


def caddy(secs: int, client: str, path: str, agent: str) -> str:
    """One line, as Caddy has it."""
    request = {
        "remote_ip": client, "remote_port": "41342", "client_ip": client, "proto": "HTTP/2.0",
        "method": "GET", "host": "www.fict.org", "uri": path,
        "headers": {"User-Agent": [agent], "Accept": ["*/*"], "Accept-Encoding": ["gzip, br"]},
        "tls": {"resumed": False, "version": 772, "cipher_suite": 4865, "proto": "h2"},
    }  # fmt: skip
    found = {
        "level": "info", "ts": secs + 0.5, "logger": "http.log.access.log0",
        "msg": "handled request", "request": request, "bytes_read": 0, "duration": 0.0009,
        "size": 5120, "status": 200, "resp_headers": {"Server": ["Caddy"]},
    }  # fmt: skip
    return json.dumps(found) + "\n"


def lines(
    form: Callable[[int, str, str, str], str], *, hostile: bool = False, seed: int = 1
) -> Iterator[str]:
    """Yield the lines of a log without end: half of them of robots, one of 50 disobeys."""
    chance = Random(seed)
    n = 0
    while True:
        n += 1
        client = f"{chance.randrange(1, 224)}.{chance.randrange(256)}.{n % 256}.{n % 251}"
        if hostile:
            kind = n % 3
            agent = f"bot{n}/1.0 (+http://{n}.example)" if kind else BROWSER.format(f"{n}.{n}")
            path = f"/{n:x}/{n * 7919:x}?{'%41' * (n % 9)}"
        else:
            browser = chance.random() < 0.5
            agent = (
                BROWSER.format(chance.randrange(80, 140)) if browser else chance.choice(CRAWLERS)
            )
            # Few paths are asked for often, most of them seldom.
            path = f"/articles/{int(chance.paretovariate(0.7)) % 50_000}.html"
            if chance.random() < 0.02:
                path = f"/private{path}"
            if chance.random() < 0.0005:
                path = "/robots.txt"
        yield form(1_795_000_000 + n // 20, client, path, agent)


def write(path: Path, found: Iterator[str], octets: int) -> int:
    """Write so much of a log, and return how many lines it has."""
    count = size = 0
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        for line in found:
            file.write(line.encode())
            count += 1
            size += len(line)
            if size >= octets:
                break
    return count


AUDIT = """
import resource, sys, time
from scrapy_koster.audit.addresses import masked
from scrapy_koster.audit.judging import Files, Version
from scrapy_koster.audit.auditor import audit
from pathlib import Path
robots, log = map(Path, sys.argv[1:])
files = Files([Version("robots.txt", float("-inf"), robots.read_bytes())])
began = time.process_time()
_, logs = audit(files, [(str(log), lambda: log.open("rb"))], masked)
secs = time.process_time() - began
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(logs[0].lines, secs, memory, logs[0].unread)
"""


def measured(robots: Path, log: Path) -> tuple[float, float]:
    """Audit in a process of its own: lines in a second of CPU, and its memory in MB."""
    ran = subprocess.run(
        [sys.executable, "-c", AUDIT, str(robots), str(log)],
        capture_output=True,
        text=True,
        check=True,
    )
    count, secs, memory, unread = map(float, ran.stdout.split())
    assert not unread
    return count / secs, memory


def spent(command: Sequence[str | Path]) -> tuple[float, float]:
    """Run *command* to its end: its seconds of CPU, and its memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: a robot disobeyed
        raise subprocess.CalledProcessError(process.returncode, list(map(str, command)))
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _version(goaccess: str) -> str:
    ran = subprocess.run([goaccess, "--version"], capture_output=True, text=True, check=True)
    return ran.stdout.partition("\n")[0].rstrip(".").replace(" -", "")


def beside_goaccess(
    goaccess: str, robots: Path, logs: Mapping[str, Path], rounds: int
) -> Iterator[Sequence[str]]:
    """Yield a row for each log: both make a page of it, by turns, each in its own process."""
    for kind, form in GOACCESS.items():
        log = logs[kind]
        page = log.with_suffix(".html")
        ours = (sys.executable, "-m", "scrapy", "robots", "audit", "--robots", robots, log)
        theirs = (goaccess, log, f"--log-format={form}", "--no-global-config", "--no-progress")
        commands: Sequence[Sequence[str | Path]] = ((*ours, "-o", page), (*theirs, "-o", page))
        ratios = []
        for n in range(rounds):
            found = {}
            for which in (0, 1) if n % 2 else (1, 0):
                page.unlink(missing_ok=True)
                found[which] = spent(commands[which])
                assert page.stat().st_size
            ratios.append(found[1][0] / found[0][0])
        yield (
            kind,
            f"{median(ratios):.2f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
            *(f"{found[which][1]:.0f}" for which in (0, 1)),
        )


def tables(rounds: int) -> Iterator[Table]:
    """Measure each kind of log."""
    with TemporaryDirectory() as folder:
        robots = Path(folder, "robots.txt")
        robots.write_text(ROBOTS)
        logs: Mapping[str, Path] = {
            "combined": Path(folder, "access.log"),
            "gz": Path(folder, "access.log.gz"),
            "json": Path(folder, "caddy.log"),
            "hostile": Path(folder, "hostile.log"),
        }
        for kind, log in logs.items():
            form = caddy if kind == "json" else combined
            octets = LINES * {"json": 500, "hostile": 20}.get(kind, 200)
            write(log, lines(form, hostile=kind == "hostile"), octets)
        rows, unmet = [], []
        for kind, log in logs.items():
            best, memory = 0.0, 0.0
            for _ in range(max(rounds // 5, 2)):
                speed, memory = measured(robots, log)
                best = max(best, speed)
            goal = GOALS.get(kind, 0)
            rows.append((kind, f"{best:,.0f}", f"{memory:.0f}", f"{goal:,}" if goal else ""))
            if best < goal:
                unmet.append(f"{kind}: {goal:,} lines a second")
        yield Table(
            "The audit of a log",
            ("log", "lines a second", "MB", "goal"),
            rows,
            "On one core, with decisions; the best of several runs. Half of the lines are of"
            " robots. In the hostile log no name, path or client is there twice.",
            unmet,
        )
        if (goaccess := shutil.which("goaccess")) is None:
            print(
                "\nSkipped: the audit side by side with GoAccess, which is not installed. Install"
                " it with `apt-get install goaccess` on Debian or Ubuntu; for other systems see"
                " https://goaccess.io/download.",
                file=sys.stderr,
            )
            return
        yield Table(
            "The audit side by side with GoAccess",
            ("log", "times as fast", "lowest to highest", "MB", "MB of GoAccess"),
            list(beside_goaccess(goaccess, robots, logs, max(rounds // 5, 2))),
            f"{_version(goaccess)} and `scrapy robots audit` each make an HTML page of the log, by"
            " turns. The ratio is of the CPU seconds of the whole process, from its start; the"
            " median of the rounds. GoAccess counts visits, and judges no robot.",
        )


def main() -> None:
    """Write a log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--gb", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    form = caddy if options.json else combined
    octets = int(options.gb * 1e9)
    count = write(options.file, lines(form, hostile=options.hostile), octets)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{options.file}: {count:,} lines ({memory} MB)")


if __name__ == "__main__":
    main()
