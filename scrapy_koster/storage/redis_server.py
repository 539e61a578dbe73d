"""The Redis server of a storage. Commands go out together, and no error has the password."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from scrapy_koster.storage.port import StorageError

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.exceptions import ResponseError
    from redis.retry import Retry
except ImportError as error:
    raise ImportError("RedisStorage needs redis-py: pip install 'scrapy-koster[redis]'") from error

__all__ = ["RedisServer", "ResponseError"]

_TIMEOUT_SECS = 2.0
_SCANNED_AT_ONCE = 1000


class RedisServer:
    """The server at *url*, which is connected to by ``connect``, or when it is first needed."""

    def __init__(self, url: str) -> None:
        self._client = _client(url)
        self._closed = False

    def connect(self) -> None:
        """Connect now, and keep the connection for the first command."""
        with self.errors():
            if not self._client.ping():
                raise redis.ConnectionError("it answered PING, but not with PONG")

    def replies(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """Send *commands* in one message, and return the reply to each; an error if that failed."""
        try:
            self._need_open()
            with self._client.pipeline(transaction=False) as pipeline:
                for command in commands:
                    pipeline.execute_command(*command)
                replies: list[Any] = pipeline.execute(raise_on_error=False)
                return replies
        except Exception as error:  # noqa: BLE001  # whatever answers at that port
            return [error] * len(commands)

    def keys(self, match: str) -> list[bytes]:
        """Return the keys that *match*; some may be there twice."""
        with self.errors():
            self._need_open()
            return list(self._client.scan_iter(match=match, count=_SCANNED_AT_ONCE))

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        with self.errors():
            self._client.close()

    def _need_open(self) -> None:
        if self._closed:
            raise StorageError("the storage is closed: open a new one")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise each error as a StorageError that names the server."""
        try:
            yield
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever answers at that port
            settings = self._client.connection_pool.connection_kwargs
            raise StorageError(
                f"the Redis server {_where(settings)} failed:"
                f" {type(error).__name__}: {error}. Start or repair it, or set KOSTER_REDIS_URL to"
                " another one"
            ) from None


# redis-py types what its methods return as what may have to be awaited, too: hence Any.
def _client(url: str) -> Any:
    # Beyond the default of redis-py of version 5.
    tls = {"ssl_check_hostname": True} if url.startswith("rediss:") else {}
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=_TIMEOUT_SECS,
            socket_connect_timeout=_TIMEOUT_SECS,
            # At once: a connection that the server has closed meanwhile. More, or after a time-out,
            # would hold a thread of the pool for long.
            retry=Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
            redis_connect_func=_log_in,
            **tls,
        )
        client.connection_pool.make_connection()
    except Exception as error:  # noqa: BLE001  # what is wrong with it, redis-py says in many ways
        # Not the text of the error: a URL that is not valid may have a password anywhere.
        raise StorageError(
            f"no Redis server can be opened by KOSTER_REDIS_URL: {type(error).__name__}."
            " See docs/fleet.md"
        ) from None
    return client


def _log_in(connection: Any) -> None:
    # A server may quote what it does not understand, in any form: HELLO has the password.
    try:
        connection.on_connect()
    except Exception as error:  # noqa: BLE001  # whatever answers at that port
        is_late = isinstance(error, redis.TimeoutError)
        kind = redis.TimeoutError if is_late else redis.ConnectionError
        raise kind(f"{type(error).__name__} while logging in") from None


def _where(settings: dict[str, Any]) -> str:
    path = settings.get("path")
    return str(path or f"{settings.get('host')}:{settings.get('port', 6379)}")
