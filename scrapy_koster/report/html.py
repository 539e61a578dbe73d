"""Makes a page: one HTML file that needs no network, with tables that its script shows."""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scrapy_koster.protocol.wording import utc
from scrapy_koster.writing import whole

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Table:
    """The columns and the values of a table."""

    name: str
    title: str
    about: str
    columns: Mapping[str, str]
    """Headings with the classes of their cells: a kind, and "minor" for a column that narrow pages
    omit. The kinds are text, site, number, time, secs, bytes, and severity
    (3 error, 2 warning, 1 note)."""
    rows: Sequence[Iterable[Any]]
    _: KW_ONLY
    sort: int = 0
    """The number of the column to sort by, from 0."""

    def packed(self) -> dict[str, Any]:
        """Return the table for the script of the page."""
        return {
            "heads": list(self.columns),
            "kinds": [key.split()[0] for key in self.columns.values()],
            "keys": list(self.columns.values()),
            "sort": self.sort,
            "values": list(zip(*self.rows, strict=True)),
        }


def write_html(
    out: str, template: str, tables: Iterable[Table], *, data: Mapping[str, Any], **values: Any
) -> None:
    """Write the page made from *template* to the file *out*. Raises OSError.

    The *values* are escaped. Tables without rows are left out. The script of the page gets the
    tables and *data*.
    """
    css, script = ((_HERE / name).read_text("utf-8") for name in ("page.css", "page.js"))
    filled = [table for table in tables if table.rows]
    rows = {**data, "tables": {table.name: table.packed() for table in filled}}
    octets = json.dumps(rows, separators=(",", ":")).encode()
    loader = FileSystemLoader(_HERE)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.globals.update(
        number=lambda count: f"{count:,}",
        share=lambda part, whole: f"{100 * part / whole:.1f} %",
        time=time_of,
    )
    page = environment.get_template(template).render(
        policy=f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)};"
        " base-uri 'none'; form-action 'none'",
        css=css,
        script=script,
        rows=base64.b64encode(zlib.compress(octets, 9)).decode(),
        tables=filled,
        **values,
    )
    with whole(out) as path:
        path.write_text(page, encoding="utf-8")


def time_of(secs: float) -> str:
    """Return a time as text, in the format that the script of the page uses."""
    return utc(secs)[:16].replace("T", " ")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
