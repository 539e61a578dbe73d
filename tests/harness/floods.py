"""Answers of which something has no end."""

from __future__ import annotations

from harness.replies import Raw

STATUS = b"HTTP/1.1 200 OK\r\n"
CHUNKED = STATUS + b"Transfer-Encoding: chunked\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"
FLOODS = {
    "a status line": Raw(200, b"HTTP/1.1 200 ", piece=b"x" * 4096),
    "no HTTP": Raw(200, piece=b"x" * 4096),
    "headers": Raw(200, STATUS, piece=b"X-Padding: %b\r\n" % (b"a" * 40) * 100),
    "folded lines": Raw(200, STATUS + b"X: a\r\n", piece=b" aaaaaaaaaaaaa\r\n" * 200),
    "interim answers": Raw(200, piece=INTERIM * 100),
    "the length of a chunk": Raw(200, CHUNKED, piece=b"0" * 4096),
    "the extension of a chunk": Raw(200, CHUNKED + b"1;", piece=b"x" * 4096),
    "a trailer": Raw(200, CHUNKED + b"3\r\n#ab\r\n0\r\n", piece=b"x" * 4096),
}
