"""Section 4 of the draft: a file, and which robots may fetch what of its site."""

from __future__ import annotations

SECTION_4 = """\
# /robots.txt for http://www.fict.org/
# comments to webmaster@fict.org

User-agent: unhipbot
Disallow: /

User-agent: webcrawler
User-agent: excite
Disallow:

User-agent: *
Disallow: /org/plans.html
Allow: /org/
Allow: /serv
Allow: /~mak
Disallow: /
"""
# Its last line is indented otherwise than the rest.
SECTION_4_AS_PRINTED = SECTION_4.removesuffix("Disallow: /\n") + "     Disallow: /\n"

COLUMNS = {"unhipbot": 0, "webcrawler": 1, "excite": 1, "figtree": 2}
"""Where a robot stands in the matrix; figtree is one of the others."""
_MATRIX = """
    http://www.fict.org/                         No       Yes       No
    http://www.fict.org/index.html               No       Yes       No
    http://www.fict.org/robots.txt               Yes      Yes       Yes
    http://www.fict.org/server.html              No       Yes       Yes
    http://www.fict.org/services/fast.html       No       Yes       Yes
    http://www.fict.org/services/slow.html       No       Yes       Yes
    http://www.fict.org/orgo.gif                 No       Yes       No
    http://www.fict.org/org/about.html           No       Yes       Yes
    http://www.fict.org/org/plans.html           No       Yes       No
    http://www.fict.org/%7Ejim/jim.html          No       Yes       No
    http://www.fict.org/%7Emak/mak.html          No       Yes       Yes
"""
MATRIX = {url: words for url, *words in map(str.split, _MATRIX.strip().splitlines())}
