"""Makes a page: one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scrapy_koster.protocol.wording import utc

_HERE = Path(__file__).parent


def rendered(template: str, *, rows: object, folder: Path = _HERE, **values: Any) -> str:
    """Return the page made from *template*, a file in *folder*. The *values* are escaped.

    *rows*, the data for the script of the page, becomes compressed JSON.
    """
    css, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    octets = json.dumps(rows, separators=(",", ":")).encode()
    loader = FileSystemLoader([folder, _HERE])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.globals.update(
        number=lambda count: f"{count:,}",
        share=lambda part, whole: f"{100 * part / whole:.1f} %",
        time=time_of,
    )
    return environment.get_template(template).render(
        policy=f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)};"
        " base-uri 'none'; form-action 'none'",
        css=css,
        script=script,
        rows=base64.b64encode(zlib.compress(octets, 9)).decode(),
        **values,
    )


def time_of(secs: float) -> str:
    """Return a time as text, in the format that the script of the page uses."""
    return utc(secs)[:16].replace("T", " ")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
