"""How a page is written: through symlinks, into devices and pipes, never half, in no new folder."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from scrapy_koster.writing import try_writing, whole


def write(name: str, text: str = "new") -> None:
    with whole(name) as path:
        path.write_text(text)


def test_a_symlink_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "page.html", tmp_path / "link.html"
    link.symlink_to("there/page.html")
    for text in ("first", "second"):  # at first the target does not exist
        try_writing(str(link))
        write(str(link), text)
        assert link.is_symlink()
        assert target.read_text() == text
        if text == "first":
            target.chmod(0o600)
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in target.parent.iterdir()] == ["page.html"]


def test_a_fifo_is_written_into(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    try_writing(str(fifo))
    write(str(fifo))
    reader.join(timeout=30)
    assert read == ["new"]
    assert fifo.is_fifo()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("folder", "directory"),
        ("missing/page.html", "its folder does not exist"),
        ("file/page.html", "its folder does not exist"),
        ("nul\0", "null"),
        ("x" * 300, "too long"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    for tried in (try_writing, write):
        with pytest.raises((OSError, ValueError), match=why):
            tried(str(tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_failure_leaves_the_old_page(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("old")
    with suppress(ZeroDivisionError), whole(str(tmp_path / "page.html")) as path:
        path.write_text("half")
        1 / 0  # noqa: B018
    assert (tmp_path / "page.html").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1
