"""Files to measure with: real ones where they are at hand, else the like of them."""

from __future__ import annotations

import random
from typing import NamedTuple

from real_files import CORPUS, File, real_files

FILES = 1_000
URLS = 50


class Corpus(NamedTuple):
    name: str
    files: list[File]


def corpus() -> Corpus:
    """Return the real files, or files made from a seed where they are not here."""
    if CORPUS.exists():
        files = real_files()
        return Corpus(f"{len(files):,} real files", files)
    made = Maker(1996)
    return Corpus(f"{FILES:,} files made from a seed", [made.file() for _ in range(FILES)])


class Maker:
    """Makes files that are distributed as the real ones are.

    Of 1,000 real files: median 518 bytes and 13 rules, mean 1,700 bytes, largest
    150 kB; 47.6 % with wildcards, 36.1 % with Allow.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randint(2, 12)))
            for _ in range(400)
        ]

    def file(self) -> File:
        chance = self._random
        site = f"https://{'www.' * (chance.random() < 0.6)}{self._word()}.example"
        rules = min(5_615, max(1, round(chance.lognormvariate(2.55, 1.5))))
        wildcards = 0.35 if chance.random() < 0.54 else 0.0
        allows = 0.25 if chance.random() < 0.46 else 0.0
        end = chance.choice(["\n", "\n", "\r\n"])
        lines = [f"# robots.txt for {site}", ""] * (chance.random() < 0.4)
        paths: list[str] = []
        while rules > 0:
            named = bool(paths) and chance.random() < 0.8
            lines.append(f"User-agent: {self._word().title() + 'bot' if named else '*'}")
            count = min(rules, chance.randint(1, 3) if named else max(1, rules * 7 // 10))
            for _ in range(count):
                path = self._path()
                if chance.random() < wildcards:
                    path = path.replace("/", "/*", 1) + chance.choice(["", "$", "*"])
                lines.append(f"{'Allow' if chance.random() < allows else 'Disallow'}: {path}")
                paths.append(path)
            lines.append("")
            rules -= count
        lines += [f"Sitemap: {site}/sitemap.xml"] * (chance.random() < 0.5)
        return File(end.join(lines).encode(), [self._url(site, paths) for _ in range(URLS)])

    def _word(self) -> str:
        return self._random.choice(self._words)

    def _path(self) -> str:
        depth = self._random.choice([1, 1, 1, 2, 2, 3, 4])
        end = self._random.choice(["/", "/", "", ".php", ".html", "?id="])
        return "/" + "/".join(self._word() for _ in range(depth)) + end

    def _url(self, site: str, paths: list[str]) -> str:
        chance = self._random
        if chance.random() < 0.5:
            return site + chance.choice(paths).replace("*", self._word()) + self._word()
        query = f"?{self._word()}={chance.randint(1, 999)}" * (chance.random() < 0.3)
        escape = "%20a%C3%A9" * (chance.random() < 0.1)
        return site + self._path().replace("?id=", "") + escape + query
