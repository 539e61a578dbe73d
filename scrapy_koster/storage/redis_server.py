"""The client of a Redis server, of which no error has the password."""

from __future__ import annotations

from typing import Any

from scrapy_koster.storage.port import StorageError

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ImportError as error:
    raise ImportError("RedisStorage needs redis-py: pip install 'scrapy-koster[redis]'") from error

_TIMEOUT_SECS = 2.0


# redis-py types what its methods return as what may have to be awaited, too: hence Any.
def redis_client(url: str) -> Any:
    """Return a client for the server at *url*, which connects when it is first used."""
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


def place_of(client: Any) -> str:
    """Return the host and port of the server, or the path of its socket."""
    settings = client.connection_pool.connection_kwargs
    path = settings.get("path")
    return str(path or f"{settings.get('host')}:{settings.get('port', 6379)}")
