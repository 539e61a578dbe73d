"""(b) The time of a decision as the number of rules grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from peers import KOSTER, PROTEGO, Peer
from report import Table
from timing import by_turns, micros

NUMBERS = (5, 50, 500, 5_000, 50_000)


def tables(rounds: int) -> Iterator[Table]:
    ours = by_turns({f"{n:,}": _decisions(KOSTER, n, 20_000) for n in NUMBERS}, rounds)
    theirs = by_turns(
        {f"{n:,}": _decisions(PROTEGO, n, max(20, 50_000 // n)) for n in NUMBERS},
        max(1, rounds // 3),
    )
    few, many = f"{NUMBERS[0]:,}", f"{NUMBERS[-1]:,}"
    growth = ours[few].ratio(ours[many])
    rows = []
    for n in NUMBERS:
        mine = ours[f"{n:,}"].median / 20_000
        other = theirs[f"{n:,}"].median / max(20, 50_000 // n)
        rows.append((f"{n:,}", micros(mine), micros(other), f"{other / mine:,.0f}"))
    yield Table(
        "Warm decision by the number of rules, us a URL",
        ("rules", KOSTER.name, PROTEGO.name, "times ours"),
        rows,
        f"One record of Disallow lines. With {many} rules a decision takes {growth:.1f} times the"
        f" time of one with {few}.",
        [] if growth <= 10 else [f"{many} rules in 10 times the time of {few}: {growth:.1f}"],
    )


def _decisions(peer: Peer, rules: int, decisions: int) -> Callable[[], None]:
    body = "User-agent: *\n" + "".join(
        f"Disallow: /section-{n % 97}/page-{n}/\n" for n in range(rules)
    )
    parser = peer.read(body.encode())
    urls = [
        f"https://www.fict.org/section-{n % 97}/page-{n * 7919 % (2 * rules)}/index.html"
        for n in range(decisions)
    ]
    peer.decide(parser, urls[:1])
    return lambda: peer.decide(parser, urls)
