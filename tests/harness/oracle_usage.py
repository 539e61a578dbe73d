"""A plain reading of Content-Usage, line by line, to compare with: attach 3 and vocab 5 to 6.

Records, groups, octets and patterns are those of the plain readings of the two standards. It is
here to be right, not fast. Dictionaries are read by another parser than the package's.
"""

from __future__ import annotations

from typing import NamedTuple

from http_sfv.dictionary import Dictionary
from http_sfv.item import Item
from http_sfv.types import Token

from harness import oracle, oracle9309

KNOWN = ("ai-input", "ai-use", "noimageai", "search", "tdm", "train-ai")


class Line(NamedTuple):
    number: int
    field: bytes
    value: bytes


def preferences(body: bytes, url: str, robot: str, standard: str) -> dict[str, str]:
    """What *body* states of *url* to *robot*, as the parser for "draft", "rfc9309" or "both"."""
    said: list[dict[str, set[str]]] = []
    if standard in ("draft", "both"):
        said += statements(draft_lines(body, robot), url)
    if standard in ("rfc9309", "both"):
        said += statements(rfc9309_lines(body, robot), url)
    said += [signal(line.value) for line in lines_before_records(body)]
    for each in said:
        if "n" in each.get("ai-input", ()):
            each.setdefault("ai-use", set()).add("n")
    found = {}
    for label in KNOWN:
        words = set().union(*(each.get(label, set()) for each in said))
        if "n" in words:
            found[label] = "n"
        elif "y" in words:
            found[label] = "y"
    return found


def statements(lines: list[Line], url: str) -> list[dict[str, set[str]]]:
    """The statements that apply: of the longest paths that match, and all Content-Signals."""
    said = [signal(line.value) for line in lines if line.field == b"content-signal"]
    rules = [split(line.value) for line in lines if line.field == b"content-usage"]
    units = oracle9309.units(oracle9309.of_url(url))
    matching = [
        (oracle9309.length(path), value)
        for path, value in rules
        if oracle9309.matches(path or b"/", units)
    ]
    longest = max((length for length, _ in matching), default=0)
    return said + [usage(value) for length, value in matching if length == longest]


def split(value: bytes) -> tuple[bytes, bytes]:
    if not value.startswith(b"/"):
        return b"", value
    end = min(at for at in (value.find(b" "), value.find(b"\t"), len(value)) if at >= 0)
    return value[:end], value[end:].strip(b" \t")


def usage(value: bytes) -> dict[str, set[str]]:
    return {key: {word} for key, word in tokens(value).items() if word in ("y", "n")}


def signal(value: bytes) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for key, word in tokens(value).items():
        if word in ("yes", "no", "y", "n"):
            label = "train-ai" if key == "ai-train" else key
            found.setdefault(label, set()).add(word[0])
    return found


def tokens(value: bytes) -> dict[str, str]:
    """The members of a dictionary that are Tokens, by a second parser; none if it fails."""
    found = Dictionary()
    try:
        found.parse(value)
    except ValueError:
        return {}
    return {
        key: str(member.value)
        for key, member in found.items()
        if isinstance(member, Item) and isinstance(member.value, Token)
    }


def all_lines(body: bytes) -> list[Line]:
    found = []
    for number, text in enumerate(oracle.split_lines(body), 1):
        field, colon, value = (part.strip(b" \t") for part in text.split(b"#")[0].partition(b":"))
        if colon and field and set(field) <= oracle.TOKEN_OCTETS:
            found.append(Line(number, oracle.ascii_lower(field), value))
    return found


def lines_before_records(body: bytes) -> list[Line]:
    found = []
    for line in all_lines(body):
        if line.field == b"user-agent":
            break
        if line.field == b"content-signal":
            found.append(line)
    return found


def draft_lines(body: bytes, robot: str) -> list[Line]:
    return [Line(*rule) for rule in oracle.obeyed_rules(body, robot)]


def rfc9309_lines(body: bytes, robot: str) -> list[Line]:
    """The lines of all groups for the robot, or else of all groups for "*" (2.2.1).

    Attach, 3, adds Content-Usage to the rules, which end the user-agent lines before them. Other
    records do not (2.2.4), nor does Content-Signal.
    """
    groups: list[tuple[list[bytes], list[Line]]] = []
    has_rules = True
    for line in all_lines(body):
        if line.field == b"user-agent":
            if has_rules:
                groups.append(([], []))
            groups[-1][0].append(oracle.ascii_lower(line.value))
            has_rules = False
        elif groups:
            groups[-1][1].append(line)
            if line.field in (b"allow", b"disallow", b"content-usage"):
                has_rules = True
    for name in (oracle.ascii_lower(robot.encode()), b"*"):
        found = [lines for agents, lines in groups if name and name in agents]
        if found:
            return [line for lines in found for line in lines]
    return []
