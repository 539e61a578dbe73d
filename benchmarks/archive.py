"""(m): what an archive costs a crawl of healthy sites, a page each, and what it writes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from statistics import median

from crawls import CRAWL, OURS, settings_of
from report import Table
from web import Web

SITES = 2_000
COST_MOST = 0.20


def tables(rounds: int) -> Iterator[Table]:
    rounds = max(5, rounds // 2)
    web = Web()
    ratios, written, taken = [], [], []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            orders = [(False, True), (True, False)]
            secs = {on: _cpu_secs(web, Path(folder), on=on) for on in orders[number % 2]}
            files = chain(Path(folder).glob("on/*.warc.gz"), Path(folder).glob("on/*.cdxj"))
            written.append(sum(file.stat().st_size for file in files) / SITES)
        ratios.append(secs[True] / secs[False])
        taken.append(secs[False])
    web.close()
    cost = median(ratios) - 1
    yield Table(
        title=f"An archive of a crawl of {SITES:,} sites, a page each",
        head=["CPU without, s", "CPU with, times that", "bytes a site"],
        rows=[[f"{median(taken):.2f}", f"{1 + cost:.3f}", f"{median(written):,.0f}"]],
        note=f"Median of {rounds} pairs of runs, one after the other;"
        f" {min(ratios):.3f} to {max(ratios):.3f}. At most {1 + COST_MOST} is the goal. The bytes"
        " are those of the records and of their index.",
        unmet=[f"an archive costs {cost:.1%}"] if cost > COST_MOST else [],
    )


def _cpu_secs(web: Web, folder: Path, *, on: bool) -> float:
    settings = {
        **settings_of(OURS),
        "KOSTER_SQLITE_PATH": str(folder / f"{on}.sqlite3"),
        "KOSTER_ARCHIVE": str(folder / "on") if on else None,
    }
    urls = [f"{web.site(number)}/page/{number}" for number in range(SITES)]
    asked = json.dumps({"urls": urls, "settings": settings})
    done = subprocess.run(
        [sys.executable, "-c", CRAWL], input=asked, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    if found["pages"] != SITES:
        raise RuntimeError(f"{found['pages']} of {SITES} pages\n{done.stderr}")
    return float(found["cpu"])
