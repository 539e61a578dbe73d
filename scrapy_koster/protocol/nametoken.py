"""3.2.1: the name token by which a robot identifies itself."""

import re
from functools import lru_cache
from typing import Any

from scrapy_koster.protocol.printable import printable

# RFC 1945, section 2.2, as reproduced in section 3.3 of the draft:
# token = 1*<any CHAR except CTLs or tspecials>
TOKEN = r"[!#$%&'*+\-.0-9A-Z^_`a-z|~]+"

_TOKEN = re.compile(TOKEN)
_SEVERAL = re.compile(f"{TOKEN}(?:[ \t]*,[ \t]*{TOKEN})+")


@lru_cache(maxsize=256)  # called for every URL, with few different values
def name_token(user_agent: str | bytes) -> str:
    """Return the name token of a User-agent header, in lower case.

    A10: the name token is the leading run of token characters. ``FigTree/0.1 Robot
    libwww-perl/5.04`` is the robot ``figtree``. If the header does not start with a token, return
    "": only the ``*`` record can apply to this robot.
    """
    match = _TOKEN.match(_text(user_agent))
    return match[0].lower() if match else ""


@lru_cache(maxsize=1000)
def names_of(robot: str | bytes) -> tuple[str, ...]:
    """Return the name tokens of a robot in lower case, the preferred name first.

    A robot may have several names: ``figtree-images, figtree`` obeys the record for the first
    name that has a record. A User-agent header has only one name, its ``name_token``.
    """
    if _SEVERAL.fullmatch(text := _text(robot)):
        return tuple(map(str.lower, _TOKEN.findall(text)))
    return (name_token(robot),)


def joined(robot: Any) -> Any:
    """Return a list or tuple of names as one text, which ``names_of`` can split.

    A value of another type is returned unchanged. Raises ValueError for a name that is "*" or not
    a name token.
    """
    if not isinstance(robot, (list, tuple)):
        return robot
    for name in robot:
        if not isinstance(name, str) or not _TOKEN.fullmatch(name) or name == "*":
            raise ValueError(f"{printable(repr(name))} is not a name token")
    return ", ".join(robot)


@lru_cache(maxsize=256)
def other_tokens(user_agent: str | bytes) -> frozenset[str]:
    """Return the tokens of a User-agent header after the name token, in lower case.

    RFC 9309, 2.2.1: the product token of ``Mozilla/5.0 (compatible; ExampleBot/0.1)``
    is ``ExampleBot``, "a substring of the User-Agent HTTP header". For several
    names (``names_of``) the result is empty.
    """
    if len(names_of(user_agent)) > 1:
        return frozenset()
    tokens = map(str.lower, _TOKEN.findall(_text(user_agent)))
    return frozenset(tokens) - {name_token(user_agent), "*"}


def _text(robot: str | bytes) -> str:
    return robot if isinstance(robot, str) else robot.decode("latin-1")
