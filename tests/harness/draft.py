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

