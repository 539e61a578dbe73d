"""Pages of a web site to measure on, the same ones from the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

PAGE_BYTES = 100_000
ROBOTS = '<meta name="robots" content="%s">'


@dataclass(frozen=True)
class Kind:
    """Pages of one kind, and of a hundred pages how many are of it."""

    name: str
    share: int
    robots: str = ""
    at_end: bool = False
    microdata: bool = False


class Pages:
    """Makes pages."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randint(2, 10)))
            for _ in range(3000)
        ]
        self._words += ["no", "none", "robots", "caf\u00e9", "na\u00efve", "Tom &amp; Jerry"]

    def several(self, kind: Kind, number: int) -> list[bytes]:
        return [self.page(kind) for _ in range(max(1, number))]

    def words(self, most: int) -> str:
        return " ".join(self._random.choices(self._words, k=self._random.randint(1, most)))

    def word(self) -> str:
        return self._random.choice(self._words[:3000])

    def page(self, kind: Kind) -> bytes:
        robots = ROBOTS % kind.robots if kind.robots else ""
        end = f"{robots if kind.at_end else ''}</body></html>\n"
        parts = [self.head("" if kind.at_end else robots)]
        size = len(parts[0].encode()) + len(end)
        while size < PAGE_BYTES:
            parts.append(self.block(kind))
            size += len(parts[-1].encode())
        return "".join([*parts, end]).encode()

    def head(self, robots: str) -> str:
        style = "".join(f".{self.word()}{{margin:0;display:none}}\n" for _ in range(60))
        script = "".join(f"if(a<{n}&&b>2){{w['{self.word()}']='</p>'}}\n" for n in range(40))
        tags = [f'<meta name="{self.word()}" content="{self.words(20)}">' for _ in range(8)]
        tags += [f'<meta property="og:{self.word()}" content="{self.words(9)}"/>' for _ in range(8)]
        tags += [f'<link rel="preload" href="/static/{self.word()}.css">' for _ in range(6)]
        return (
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{self.words(9)}</title>\n<!-- {self.words(9)} -->\n<style>{style}</style>\n"
            + "\n".join(tags)
            + f"\n<script>{script}</script>\n{robots}\n</head>\n<body>\n"
        )

    def block(self, kind: Kind) -> str:
        links = "".join(
            f'<li class="{self.word()}"><a href="/{self.word()}/{self.word()}?id={n}&amp;x=1">'
            f"{self.words(4)}</a></li>\n"
            for n in range(self._random.randint(1, 6))
        )
        tags = '<meta itemprop="position" content="1">' * 2 if kind.microdata else ""
        return (
            f'<div class="{self.word()} {self.word()}" id="{self.word()}">{tags}\n'
            f"<h2>{self.words(8)}</h2>\n"
            f'<img src="/i/{self.word()}.png" alt="{self.words(5)}" width="40" height="30">\n'
            f"<p>{self.words(60)} <b>{self.words(3)}</b> {self.words(60)}</p>\n"
            f"<ul>\n{links}</ul>\n</div>\n"
        )
