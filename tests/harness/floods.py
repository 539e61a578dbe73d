"""Answers of which something has no end."""

from __future__ import annotations

from harness.replies import Flood

STATUS = b"HTTP/1.1 200 OK\r\n"
CHUNKED = STATUS + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = CHUNKED + b"3\r\n#ab\r\n0\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
FLOODS = {
    "a status line": Flood(200, b"HTTP/1.1 200 ", piece=b"x" * 4096),
    "no HTTP": Flood(200, piece=b"x" * 4096),
    "lines that are no HTTP": Flood(200, piece=b"xxxxxx\n" * 600),
    "empty lines": Flood(200, piece=b"\r\n" * 600),
    "the name of a header": Flood(200, STATUS, piece=b"x" * 4096),
    "the value of a header": Flood(200, STATUS + b"X: ", piece=b"x" * 4096),
    "headers": Flood(200, STATUS, piece=b"X-Padding: %b\r\n" % (b"a" * 40) * 100),
    "lengths": Flood(200, STATUS, piece=b"Content-Length: 3\r\n" * 100),
    "headers without colon": Flood(200, STATUS, piece=b"x" * 200 + b"\r\n"),
    "folded lines": Flood(200, STATUS + b"X: a\r\n", piece=b" aaaaaaaaaaaaa\r\n" * 200),
    "interim answers": Flood(200, piece=INTERIM * 100),
    "continuations": Flood(200, piece=b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "the length of a chunk": Flood(200, CHUNKED, piece=b"0" * 4096),
    "the extension of a chunk": Flood(200, CHUNKED + b"1;", piece=b"x" * 4096),
    "extensions of small chunks": Flood(200, CHUNKED, piece=b"1;%b\r\n#\r\n" % (b"x" * 900)),
    "trailers": Flood(200, LAST_CHUNK, piece=b"X-Padding: aaaaaaaaaaaa\r\n" * 100),
    "a trailer": Flood(200, LAST_CHUNK, piece=b"x" * 4096),
    "what follows a 304": Flood(200, b"HTTP/1.1 304 Not Modified\r\n\r\n", piece=b"x" * 4096),
}
