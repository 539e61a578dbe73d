"""How a page is made: one HTML file, which needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from scrapy_koster.report.table import SHOWN_FIRST, formatted

_HERE = Path(__file__).parent


def rendered(
    template: str, *, rows: object, files: object = (), folder: Path = _HERE, **values: Any
) -> str:
    """Return the page that *template* of a folder makes of *values*.

    *rows* and *files* are packed, for the script of the page. What is escaped is all
    that comes in by *values*.
    """
    css, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    return (
        _environment(folder)
        .get_template(template)
        .render(
            policy=f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)};"
            " base-uri 'none'; form-action 'none'",
            css=css,
            script=script,
            first=SHOWN_FIRST,
            rows=_packed(rows),
            files=_packed(files),
            **values,
        )
    )


def _environment(folder: Path) -> Environment:
    environment = Environment(loader=FileSystemLoader([folder, _HERE]), autoescape=True)
    environment.globals.update(
        number=lambda count: f"{count:,}",
        share=lambda part, whole: f"{100 * part / whole:.1f} %",
        time=lambda secs: formatted(secs, "time"),
    )
    return environment


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _packed(value: object) -> str:
    octets = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(octets, 9)).decode()
