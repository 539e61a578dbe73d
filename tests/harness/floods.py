"""Answers of which something has no end."""

from __future__ import annotations

from harness.replies import Raw

STATUS = b"HTTP/1.1 200 OK\r\n"
CHUNKED = STATUS + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = CHUNKED + b"3\r\n#ab\r\n0\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
FLOODS = {
    "a status line": Raw(200, b"HTTP/1.1 200 ", piece=b"x" * 4096),
    "no HTTP": Raw(200, piece=b"x" * 4096),
    "lines that are no HTTP": Raw(200, piece=b"xxxxxx\n" * 600),
    "empty lines": Raw(200, piece=b"\r\n" * 600),
    "the name of a header": Raw(200, STATUS, piece=b"x" * 4096),
    "the value of a header": Raw(200, STATUS + b"X: ", piece=b"x" * 4096),
    "headers": Raw(200, STATUS, piece=b"X-Padding: %b\r\n" % (b"a" * 40) * 100),
    "lengths": Raw(200, STATUS, piece=b"Content-Length: 3\r\n" * 100),
    "headers without colon": Raw(200, STATUS, piece=b"x" * 200 + b"\r\n"),
    "folded lines": Raw(200, STATUS + b"X: a\r\n", piece=b" aaaaaaaaaaaaa\r\n" * 200),
    "interim answers": Raw(200, piece=INTERIM * 100),
    "continuations": Raw(200, piece=b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "the length of a chunk": Raw(200, CHUNKED, piece=b"0" * 4096),
    "the extension of a chunk": Raw(200, CHUNKED + b"1;", piece=b"x" * 4096),
    "extensions of small chunks": Raw(200, CHUNKED, piece=b"1;%b\r\n#\r\n" % (b"x" * 900)),
    "trailers": Raw(200, LAST_CHUNK, piece=b"X-Padding: aaaaaaaaaaaa\r\n" * 100),
    "a trailer": Raw(200, LAST_CHUNK, piece=b"x" * 4096),
    "what follows a 304": Raw(200, b"HTTP/1.1 304 Not Modified\r\n\r\n", piece=b"x" * 4096),
}
