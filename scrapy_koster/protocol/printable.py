"""Section 6: text from a server, made harmless for logs and terminals."""

_ERROR_CHARS = 1000


def printable(text: str | bytes, limit: int = 200) -> str:
    """Return *text* with escapes for unprintable characters, as repr() writes them.

    The result has *limit* characters at most; "..." replaces the rest.
    Bytes are decoded as latin-1.
    """
    start = text[: limit + 1]
    if isinstance(start, bytes):
        start = start.decode("latin-1")
    shown = escaped(start)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def escaped(text: str) -> str:
    """Return the whole *text* with escapes for unprintable characters."""
    shown = (c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if text.isprintable() else "".join(shown)


def error_text(error: BaseException) -> str:
    """Return the class and the message of *error*, printable and cut.

    Never raises, even if ``__str__`` of *error* does.
    """
    try:
        return printable(f"{type(error).__name__}: {error}", _ERROR_CHARS)
    except Exception:  # noqa: BLE001
        return printable(type(error).__name__, _ERROR_CHARS)
