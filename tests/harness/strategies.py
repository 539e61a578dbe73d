"""Files and URLs for property tests, made of few pieces so that they collide."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = [
    "/", "a", "b", "ab", "/a", "/a/", "/a/b", "/robots.txt", "robots.txt", ".", "~", "*", "$",
    "%7e", "%7E", "%2F", "%2f", "%252F", "%25", "%", "%4", "%zz", "%61", "%C3%A9", "%c3", "%23",
    "%3F", "?", "?a=1", ";p", "&", "+", "%20", "!", "%0A", "//", "..", "é", "ÿ", "%FF", "%00", "\0",
    "\x7f", "\u017f", "\u212a", "\U0001f916",
]  # fmt: skip
TOKENS = ["a", "bot", "figtree", "x", "googlebot", "a/b", "", "*", "\u212a"]
ROBOTS = st.sampled_from(["a", "bot", "figtree", "googlebot", "", "*", "g", "unnamed"])

paths = st.lists(st.sampled_from(PIECES), max_size=5).map("".join)
rooted_paths = paths.map(lambda path: "/" + path)

space = st.sampled_from(["", "", "", " ", "\t", " \t ", "\x0b", "\xa0"])
fields = st.sampled_from(
    ["Disallow"] * 6
    + ["Allow"] * 4
    + ["User-agent"] * 3
    + ["disallow", "ALLOW", "uSER-aGENT", "Crawl-delay", "X", "bad field", "X#", "", "Alow"]
)
values = st.one_of(rooted_paths, rooted_paths, paths, st.sampled_from(TOKENS))
comments = st.sampled_from(["", "", "", "", "#", " # Disallow: /"])


@st.composite
def text_lines(draw: st.DrawFn) -> str:
    field = draw(fields)
    value = draw(st.sampled_from(TOKENS) if field.lower() == "user-agent" else values)
    colon = draw(st.sampled_from([":", ":", ":", ": ", " :", "::", ""]))
    return draw(space) + field + colon + draw(space) + value + draw(space) + draw(comments)


@st.composite
def rule_lines(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["Allow: ", "Disallow: "])) + draw(rooted_paths)


garbage_lines = st.sampled_from(["", " ", "#", "Disallow", ": /", "<html>", "\0", "\ufeff", "\x85"])
some_lines = st.one_of(text_lines(), text_lines(), rule_lines(), rule_lines(), garbage_lines)
line_ends = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Files that mostly have a record for everybody."""
    head = draw(st.sampled_from(["", "\ufeff", "User-agent: *\n", "User-agent: *\n", "junk\n"]))
    lines = draw(st.lists(some_lines, max_size=14))
    end = draw(line_ends)
    text = "".join(line + (end if draw(st.booleans()) else draw(line_ends)) for line in lines)
    coding = draw(st.sampled_from(["utf-8", "utf-8", "latin-1"]))
    return (head + text).encode(coding, "replace" if coding == "latin-1" else "strict")


origins = st.sampled_from(
    ["http://h", "http://h", "http://h", "https://h:8443", "HTTP://H", "http://user:pw@h",
     "http://[::1]", "http://bücher.example", "ftp://h", "x-odd+1://h", "http://"]
)  # fmt: skip
fragments = st.sampled_from(["", "", "", "#", "#frag", "#/a?b%2F"])
lone_surrogates = st.sampled_from(["/\ud800", "/a\udcff"])
queries = st.sampled_from(["", "?", "?x=1", "?x=/a", "?x=http://h/a"])


@st.composite
def urls(draw: st.DrawFn) -> str:
    behind = draw(st.one_of(rooted_paths, rooted_paths, rooted_paths, queries, lone_surrogates))
    return draw(origins) + behind + draw(fragments)
