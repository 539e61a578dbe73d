"""Files of /robots.txt as real sites have them, which may stand beside the project."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "real-robots.jsonl.gz"
NO_CORPUS = "there is no ../shared/corpus/real-robots.jsonl.gz beside the project"


class File(NamedTuple):
    """A /robots.txt and URLs of its site."""

    body: bytes
    urls: list[str]


def real_files() -> list[File]:
    with gzip.open(CORPUS) as rows:
        return [
            File(base64.b64decode(row["robots_b64"]), row["urls"]) for row in map(json.loads, rows)
        ]
