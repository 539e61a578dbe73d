"""The pages of settings and of stats, against the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache

import pytest
import scrapy
from harness.crawling import Crawl, RecordingSpider
from harness.documents import ROOT, blocks, code, like, rows, section, settings_of, text
from scrapy.crawler import Crawler
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from scrapy_koster import signals
from scrapy_koster.crawl.config import DEFAULTS, Config
from scrapy_koster.crawl.messages import announcer

SETTINGS = text("docs/settings.md")
STATS = text("docs/stats.md")
SCRAPYS = ["ROBOTSTXT_OBEY", "ROBOTSTXT_USER_AGENT"]
HTML = {"Content-Type": "text/html"}
UNITS = {"SECS": "seconds", "BYTES": "bytes", "MAX": "redirects", "SITES": "sites"}


# docs/settings.md


def test_every_setting_has_its_section() -> None:
    named = re.findall(r"^### (\S+)$", SETTINGS, re.MULTILINE)
    scrapys = len(SCRAPYS)
    assert named[:scrapys] == SCRAPYS
    assert sorted(named[scrapys:]) == sorted(DEFAULTS)


def test_the_defaults_of_the_settings_and_their_units() -> None:
    for name, default in DEFAULTS.items():
        of_it = section(SETTINGS, f"### {name}")
        stated = re.search(r"^Default: `(.+?)`(.*)$", of_it, re.MULTILINE)
        assert stated, name
        assert ast.literal_eval(stated[1]) == default, name
        numeric = isinstance(default, int) and not isinstance(default, bool)
        assert stated[2].strip() == (UNITS[name.rpartition("_")[2]] if numeric else ""), name


def test_the_examples_of_the_settings_are_valid(crawl: Crawl) -> None:
    """A setting whose default is a number needs no example."""
    for name in (*SCRAPYS, *DEFAULTS):
        examples = blocks(section(SETTINGS, f"### {name}"), "python")
        assert len(examples) == (0 if name.rpartition("_")[2] in UNITS else 1), name
        for block in examples:
            example = settings_of(block)
            assert name in example
            crawler = Crawler(RecordingSpider, crawl.settings(None, example))
            crawler._apply_settings()
            Config.from_crawler(crawler)


def test_what_is_no_setting_is_not_named() -> None:
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        named = set(re.findall(r"\bKOSTER_[A-Z_]+[A-Z]\b", page.read_text("utf-8")))
        assert named <= set(DEFAULTS), page.name


BY_HAND = blocks(section(SETTINGS, "## Without the add-on"), "python")[0]


def test_by_hand_and_by_the_add_on_is_the_same(crawl: Crawl) -> None:
    addon, by_hand = (
        Crawler(RecordingSpider, crawl.settings(None, settings))
        for settings in ({"ADDONS": {"scrapy_koster.Addon": 500}}, settings_of(BY_HAND))
    )
    addon._apply_settings()
    by_hand._apply_settings()
    for kind in ("DOWNLOADER_MIDDLEWARES", "SPIDER_MIDDLEWARES"):
        assert components(addon, kind) == components(by_hand, kind)
    for name in ("ROBOTSTXT_OBEY", "SCHEDULER"):
        assert addon.settings[name] == by_hand.settings[name]


def components(crawler: Crawler, kind: str) -> list[object]:
    components = crawler.settings.getwithbase(kind).items()
    return build_component_list({load_object(path): order for path, order in components})


# docs/support.md


def test_the_versions_that_are_supported_are_those_of_the_package() -> None:
    page, project = text("docs/support.md"), text("pyproject.toml")
    versions = re.findall(r"Python :: (3\.\d+)", project)
    assert f"| Python | {versions[0]} to {versions[-1]} |" in page
    assert f'requires-python = ">={versions[0]}"' in project
    [scrapy] = re.findall(r"^\| Scrapy \| ([\d.]+) and newer", page, re.MULTILINE)
    assert f'"scrapy>={scrapy}"' in project


# docs/stats.md


@cache
def sources() -> Sequence[ast.AST]:
    paths = sorted((ROOT / "scrapy_koster").rglob("*.py"))
    trees = [ast.parse(path.read_text("utf-8")) for path in paths if "commands" not in path.parts]
    return [node for tree in trees for node in ast.walk(tree)]


def calls(*names: str) -> Iterator[ast.Call]:
    """The calls of methods of these names."""
    for node in sources():
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in names:
                yield node


def literal(node: ast.expr) -> str | None:
    """A string, with {} for what is formatted into it; None if it is none."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(
                "{}" if isinstance(value, ast.FormattedValue) else literal(value) or ""
                for value in values
            )
        case _:
            return None


def counted() -> set[str]:
    """The names of stats in the code, with {} for what varies, but for those of Scrapy."""
    names = {literal(call.args[0]) for call in calls("inc_value", "set_value", "max_value")}
    return {name for name in names if name and not name.startswith("spider_exceptions/")}


def documented() -> list[str]:
    return [code(row[0]) for row in rows(section(STATS, "## Stats"))]


def test_every_stat_of_the_code_is_documented() -> None:
    names = documented()
    assert len(names) == len(set(names))
    patterns = {name: like(name) for name in counted()}
    for name, pattern in patterns.items():
        assert any(pattern.fullmatch(known) for known in names), name
    for known in names:
        assert any(pattern.fullmatch(known) for pattern in patterns.values()), known


FIRST_SITES = "INFO, then DEBUG"
LEVELS = {
    "debug": "DEBUG",
    "info": "INFO",
    "info_first": FIRST_SITES,
    "warning": "WARNING",
    "warning_once": "WARNING",
    "defect": "ERROR",
}


OF_A_CRAWL = [
    *(ROOT / "scrapy_koster" / "crawl").rglob("*.py"),
    ROOT / "scrapy_koster" / "report" / "extension.py",
]


def said() -> set[tuple[str, str]]:
    """Return the level and the text of each call of a Log."""
    of_sites = {(FIRST_SITES, _as_documented(line)) for line in announcer.LINES.values()}
    return of_sites | {
        (level, _as_documented(line))
        for path in OF_A_CRAWL
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for level, line in _said_by(node)
    }


def _said_by(node: ast.AST) -> Iterator[tuple[str, str]]:
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(attr="_log") | ast.Name("log"), attr=name)
        ):
            if name == "is_first":
                return
            level, line = LEVELS[name], literal(node.args[2 if name == "info_first" else 0])
        case ast.Call(func=ast.Name("log")):
            level, line = FIRST_SITES, literal(node.args[0])
        case _:
            return
    if ast.unparse(node.args[-1]) == "LINES[kind]":
        return
    assert line, "a line of the log is written out where it is said"
    yield level, line


def _as_documented(line: str) -> str:
    return re.sub(r"%\((.+?)\)[-0-9.]*[a-z]", r"<\1>", line)


def test_every_log_line_is_documented() -> None:
    log_lines = section(STATS, "## Log lines")
    table = [
        (level, start.removesuffix(" ..."))
        for level in dict.fromkeys(LEVELS.values())
        for start in re.findall("(?m)^- `(.+?)`", section(log_lines, f"### {level}"))
    ]
    code_lines = said()
    for level, line in code_lines:
        assert [known for known, start in table if line.startswith(start)] == [level], line
    for _, start in table:
        assert any(line.startswith(start) for _, line in code_lines), start


RAISED = {"ImportError", "RuntimeError", "ValueError"}


def raised() -> set[tuple[str, str]]:
    """The class and the text of each error of a crawl that a user meets as a whole sentence."""
    found = set()
    for path in OF_A_CRAWL:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case (
                    ast.Raise(exc=ast.Call(func=ast.Name(id=name), args=[text, *_]))
                    | ast.Return(value=ast.Call(func=ast.Name(id=name), args=[text, *_]))
                ) if name in RAISED:
                    found.add((name, literal(text) or ""))
    return {(name, said) for name, said in found if re.match(r"[A-Z{]|scrapy-koster", said)}


def test_every_error_is_documented() -> None:
    table = [
        (error, like(re.sub(r"<\w+>", "{x}", code(text).removesuffix(" ..."))))
        for error, text in rows(section(STATS, "## Errors"))
    ]
    errors = raised()
    assert len(errors) > 10
    for error, said in errors:
        assert any(error == known and start.match(said) for known, start in table), said
    for known, start in table:
        assert any(error == known and start.match(said) for error, said in errors), start.pattern


def test_the_meta_keys_are_those_of_the_code() -> None:
    keys = {code(row[0]) for row in rows(section(STATS, "## Meta keys"))}
    literals = {literal(node) for node in sources() if isinstance(node, ast.Constant)}
    assert keys == {
        "dont_obey_robotstxt",
        "robotstxt_user_agent",
        "koster_robotstxt",
        "koster_verdict",
        "koster_page_directives",
        "koster_usage",
    }
    assert keys <= literals


@pytest.mark.skipif(scrapy.version_info < (2, 18), reason="Scrapy 2.18 has this signal")
def test_the_table_of_signals() -> None:
    names = [code(row[0]) for row in rows(section(STATS, "## Signals"))]
    assert names == [name for name, value in vars(signals).items() if type(value) is object]
