"""What the documents say, for the tests that compare it with the code."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.parse import urlsplit

from scrapy import Spider

from harness.server import Site

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def marked(page: str, marks: tuple[str, str]) -> str:
    """Return what *page*, of Markdown, has between the marks."""
    begin, end = marks
    return page.partition(begin)[2].partition(end)[0]


def section(document: str, heading: str) -> str:
    """What stands below a heading, up to the next of its level or above."""
    level = len(heading) - len(heading.lstrip("#"))
    _, _, below = document.partition(f"\n{heading}\n")
    assert below, f"there is no heading {heading!r}"
    return re.split(rf"(?m)^#{{1,{level}}} ", _without_code(below), maxsplit=1)[0]


def _without_code(markdown: str) -> str:
    """With the comments of code blocks hidden, which look like headings."""
    return re.sub(r"(?ms)^```.*?^```", lambda block: re.sub("(?m)^#", " #", block[0]), markdown)


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of a page or of a part of it, those in lists too."""
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^\1```$", page)
    return [dedent(block) for _, block in found]


def rows(markdown: str) -> list[list[str]]:
    """The cells of its tables, without their heads."""
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in markdown.splitlines()
        if line.startswith("|")
    ]
    rules = [n for n, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    heads = {n for rule in rules for n in (rule - 1, rule)}
    return [row for n, row in enumerate(cells) if n not in heads]


def code(cell: str) -> str:
    """The text of a cell that is all code."""
    found = re.fullmatch(r"`(.+)`", cell)
    assert found, f"no code: {cell}"
    return found[1].replace(r"\|", "|")


def settings_of(block: str) -> dict[str, Any]:
    """The settings that a block of Python makes, as in settings.py."""
    namespace: dict[str, Any] = {}
    exec(block, namespace)
    return {name: value for name, value in namespace.items() if name.isupper()}


def spider_of(block: str, folder: Path, example: Site) -> type[Spider]:
    """The spider of a block of Python, which crawls *example* in place of example.com.

    It is written to a file, because Scrapy looks at the source of callbacks. Each site has its own.
    """
    path = folder / f"shown_{urlsplit(example.url('')).port}.py"
    source = re.sub(r"(?<=\")https://example\.com(?=/)", example.url(""), block)
    path.write_text(source, "utf-8")
    names: dict[str, Any] = {"__name__": "shown"}
    exec(compile(source, path, "exec"), names)
    [spider] = [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, Spider) and value.__module__ == "shown"
    ]
    return spider


def like(name: str) -> re.Pattern[str]:
    """What a name with {placeholders} stands for."""
    parts = re.split(r"\{[^}]*\}", name)
    return re.compile("[^/]+".join(map(re.escape, parts)))
