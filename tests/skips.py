"""Fail if a log of pytest -rs has a skip whose reason tests/skips.md does not list.

python tests/skips.py LOG
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).with_suffix(".md")
SKIP = re.compile(r"^SKIPPED \[\d+\] (\S+?): (.*)$", re.MULTILINE)
ROW = re.compile(r"^\| `(.+?)` \|", re.MULTILINE)


def unlisted(log: str, page: str) -> list[str]:
    """Return the skips in *log* whose reason does not begin as a row of *page* does."""
    reasons = tuple(ROW.findall(page))
    return [f"{test}: {why}" for test, why in SKIP.findall(log) if not why.startswith(reasons)]


def main(log: str) -> int:
    found = unlisted(Path(log).read_text("utf-8"), PAGE.read_text("utf-8"))
    print(
        "\n".join(["Skips that tests/skips.md does not list:", *found]) if found else "No new skip."
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
