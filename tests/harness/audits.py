"""An audit of made-up logs, as one call."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from functools import partial
from io import BufferedReader, BytesIO
from typing import Any

from harness.audit_logs import CHANGED, FIRST, SECOND
from scrapy_koster.audit.addresses import masked
from scrapy_koster.audit.auditor import audit
from scrapy_koster.audit.judging import Files, Version
from scrapy_koster.audit.result import Result
from scrapy_koster.protocol.wording import STANDARD_KEYS

VERSIONS = (Version("new.txt", CHANGED, SECOND), Version("old.txt", float("-inf"), FIRST))


STANDARDS = {key: standard for standard, key in STANDARD_KEYS.items()}


def day_of(secs: int) -> str:
    return datetime.fromtimestamp(secs, timezone.utc).strftime("%Y-%m-%d")


def audited(
    *logs: bytes, reading: str = "draft", versions: Sequence[Version] = VERSIONS, **options: Any
) -> dict[str, Any]:
    opened: list[tuple[str, Any]] = [
        (f"log{n}", partial(BufferedReader, BytesIO(log))) for n, log in enumerate(logs)
    ]
    result = audit(Files(versions), opened, masked, reading=STANDARDS[reading], **options)
    return Result(*result).to_dict()
