"""What is Redis' own: the server, its rights and keys, and what is wrong with what it says."""

from __future__ import annotations

import json
import re
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any
from urllib.parse import quote

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from harness.certificate import private, signed
from harness.documents import blocks, section, text
from harness.redis_server import RedisServer, answering, common_server, redis_server

from scrapy_koster.protocol.site import Site
from scrapy_koster.storage import Claimed, StorageError
from scrapy_koster.storage.contract import COPY, FAILURE, A, B
from scrapy_koster.storage.encoding import decoded, encoded
from scrapy_koster.storage.redis import RedisStorage

SECS = 30.0
PASSWORD = "s3cret/p@ss"
QUOTED = "s3cret%2Fp%40ss"


@pytest.fixture
def server() -> RedisServer:
    return common_server()


@pytest.fixture
def prefix() -> str:
    return f"test-{token_hex(6)}"


@pytest.fixture
def storage(server: RedisServer, prefix: str) -> Iterator[RedisStorage]:
    with closing(RedisStorage(server.url(), prefix, 3600)) as opened:
        yield opened


@pytest.fixture
def client(server: RedisServer) -> Iterator[Any]:
    with server.client() as client:
        yield client


def known_key(prefix: str, site: Site = A) -> str:
    return f"{prefix}:2:known:{{{site}}}"


def claim_key(prefix: str, site: Site = A) -> str:
    return f"{prefix}:2:claim:{{{site}}}"


def uses(storage: RedisStorage) -> None:
    """All that a storage does."""
    assert storage.claim(A, "a", now=0.0, secs=SECS).lease_left == 0
    storage.put(A, COPY, "a")
    assert storage.claim(A, "b", now=0.0, secs=SECS).known == COPY
    storage.release(A, "b")
    assert storage.get(A) == COPY
    assert list(storage.sites()) == [(A, COPY)]
    assert storage.forget(A)
    assert storage.begin_visit("a.example", "a", now=0.0, secs=SECS) == 0.0
    storage.end_visit("a.example", "a", now=0.0, secs=SECS)
    assert storage.begin_visit("a.example", "a", now=0.0, secs=SECS) > 0.0


def failure_of(url: str, prefix: str = "koster") -> str:
    """What a storage says that cannot be read."""
    with closing(RedisStorage(url, prefix, 60)) as storage, pytest.raises(StorageError) as caught:
        storage.get(A)
    return str(caught.value)


# Keys and values


def test_whatever_is_stored_ends_by_itself(storage: RedisStorage, client: Any, prefix: str) -> None:
    storage.put(A, COPY)
    storage.put(B, FAILURE)
    storage.claim(A, "a", now=0.0, secs=SECS)
    storage.begin_visit("a.example", "a", now=0.0, secs=SECS)
    lock = f"{prefix}:2:lock:{{a.example}}"
    assert 25_000 < client.pttl(lock) <= 30_000
    assert 25_000 < client.pttl(claim_key(prefix)) <= 30_000
    assert 3500 < client.ttl(known_key(prefix)) <= 3600
    storage.end_visit("a.example", "a", now=0.0, secs=SECS / 2)
    assert 10_000 < client.pttl(lock) <= 15_000
    client.expire(known_key(prefix), 5)
    storage.put(A, replace(COPY, fetched=2000.0))
    assert client.ttl(known_key(prefix)) > 3500
    assert all(client.ttl(key) > 0 for key in client.scan_iter(f"{prefix}*"))


def test_a_late_answer_is_not_that_of_the_next_call(prefix: str) -> None:
    with (
        redis_server() as server,
        closing(RedisStorage(f"{server.url()}?socket_timeout=0.2", prefix, 60)) as storage,
    ):
        storage.put(A, COPY)
        storage.put(B, FAILURE)
        with server.client() as client:
            client.client_pause(500)
            with pytest.raises(StorageError, match="TimeoutError"):
                storage.get(A)
            client.ping()  # it is answered when the pause has ended
            assert storage.get(B) == FAILURE


@pytest.mark.parametrize(("policy", "evicts"), [("noeviction", False), ("volatile-lru", True)])
def test_whether_keys_may_be_evicted(prefix: str, policy: str, evicts: bool) -> None:
    with redis_server() as server, closing(RedisStorage(server.url(), prefix, 60)) as storage:
        with server.client() as client:
            client.config_set("maxmemory-policy", policy)
            assert storage.evicts() is evicts
            client.execute_command("ACL", "SETUSER", "default", "-info")
        assert not storage.evicts()


# Several calls in one message


def call(method: str, *args: Any, **how: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return method, args, how


NOW = {"now": 0.0, "secs": SECS}


def test_a_call_that_the_server_refuses_fails_alone(prefix: str) -> None:
    with redis_server() as server, server.client() as admin:
        rules = ["on", ">right", f"~{prefix}:2:known:*", "+@all"]
        admin.execute_command("ACL", "SETUSER", "koster", *rules)
        url = server.url("koster:right@")
        with closing(RedisStorage(url, prefix, 60)) as storage:
            visit, got = storage.call_together(
                [call("begin_visit", "a.example", "a", **NOW), call("get", A)]
            )
        assert isinstance(visit, StorageError)
        assert "NoPermissionError" in str(visit)
        assert got is None


def test_a_server_that_is_away_fails_all_calls(prefix: str) -> None:
    """After its restart, calls succeed again, although the server has lost scripts."""
    calls = [call("put", A, COPY), call("claim", B, "a", **NOW), call("get", B)]
    with redis_server() as server, closing(RedisStorage(server.url(), prefix, 60)) as storage:
        for _ in range(2):
            uses(storage)
            assert not any(isinstance(each, Exception) for each in storage.call_together(calls))
            server.stop()
            for each in storage.call_together(calls):
                assert f"{server.port} failed: Connection" in str(each)
            with pytest.raises(StorageError, match=f"{server.port} failed: ConnectionError"):
                storage.get(A)
            server.start()


# What somebody else put there


def valued(known: object, body: bytes = b"") -> bytes:
    return b"1.0 " + zlib.compress(json.dumps(known).encode() + b"\n" + body)


FIELDS: dict[str, Any] = {
    "url": "http://a.example/",
    "status": 200,
    "etag": None,
    "last_modified": None,
    "fetched": 1.0,
    "expires": 2.0,
    "cut_bytes": None,
    "life_stated": False,
    "digest": COPY.digest,
    "record_id": None,
}
FAILED: dict[str, Any] = {"reason": "x", "attempts": 1, "since": 1.0, "asked": 1.0, "retry": 2.0}
WRONG: dict[str, bytes] = {
    "garbage": b"1.0 garbage",
    "cut": b"1.0 " + encoded(COPY)[:-1],
    "no JSON": b"1.0 " + zlib.compress(b"{\nDisallow: /"),
    "JSON too deep": b"1.0 " + zlib.compress(b"[" * 1_000_000 + b"\n"),
    "a copy of an older release": valued(
        {"copy": {name: FIELDS[name] for name in FIELDS if name not in ("digest", "record_id")}}
    ),
    "a status of text": valued({"copy": {**FIELDS, "status": "200"}}),
    "a header with a line end": valued({"copy": {**FIELDS, "etag": "a\r\nCookie: b"}}),
    "a text too long": valued({"copy": {**FIELDS, "url": "x" * 2**17}}),
    "an endless number": b"1.0 " + zlib.compress(b'{"copy": ' + b"9" * 10_000 + b"}\n"),
    "a body too long": valued({"copy": FIELDS}, bytes(10 * 2**20 + 1)),
    "30 MB": b"1.0 " + zlib.compress(bytes(30 * 2**20), level=1),
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_a_value_that_is_not_valid(
    storage: RedisStorage, client: Any, prefix: str, value: bytes
) -> None:
    client.set(known_key(prefix), value)
    storage.put(B, COPY)
    assert storage.get(A) is None
    claimed = storage.claim(A, "a", now=0.0, secs=SECS, unless_known=True)
    assert claimed == Claimed(None, 0.0)
    assert dict(storage.sites()) == {B: COPY}
    storage.put(A, COPY, "a")
    assert storage.get(A) == COPY


@pytest.mark.slow
def test_unpacking_is_bounded() -> None:
    bomb = zlib.compress(bytes(100 * 2**20), level=1)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="too long"):
            decoded(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * 2**20


def test_keys_of_another_type(storage: RedisStorage, client: Any, prefix: str) -> None:
    for key in (known_key(prefix), claim_key(prefix)):
        client.lpush(key, "x")
    with pytest.raises(StorageError, match="WRONGTYPE"):
        storage.get(A)
    uses(storage)


# Rights, TLS, a Cluster


def test_the_rights_of_the_documents_are_enough() -> None:
    [line] = blocks(section(text("docs/fleet.md"), "### Rights"), "text")
    with redis_server() as server, server.client() as admin:
        admin.execute_command(*line.split())
        with closing(RedisStorage(server.url("koster:password@"), "koster", 60)) as storage:
            uses(storage)
            assert not storage.evicts()
        assert admin.acl_log() == []
        assert "permission" in failure_of(server.url("koster:password@"), "other")


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[RedisServer, Path]]:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate, key_file = folder / "redis.pem", folder / "redis.key"
    certificate.write_bytes(signed("127.0.0.1", key).public_bytes(Encoding.PEM))
    key_file.write_bytes(private(key))
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(key_file)]
    options = [*files, "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"]
    trusted = {"ssl": True, "ssl_ca_certs": str(certificate)}
    with redis_server(*options, tls=True, **trusted) as server:
        yield server, certificate


def test_redis_is_reached_by_tls_and_a_wrong_certificate_is_not_trusted(tmp_path: Path) -> None:
    with tls_server(tmp_path) as (server, certificate):
        url = f"{server.url()}?ssl_ca_certs={certificate}"
        with closing(RedisStorage(url, "koster", 60)) as storage:
            uses(storage)
        # Of a certificate that nobody trusts, and of another host's.
        for distrusted in (server.url(), url.replace("127.0.0.1", "localhost")):
            assert "CERTIFICATE_VERIFY_FAILED" in failure_of(distrusted)


# Messages


ANSWERS = {
    "what was sent": f"-ERR unknown command 'AUTH', with args: '{PASSWORD}' '{QUOTED}'\r\n",
    "HTTP": "HTTP/1.1 400 Bad Request\r\n\r\n",
    "other types": "*1\r\n$1\r\nx\r\n" * 10,
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_no_message_has_the_password(answer: str) -> None:
    with answering(answer.encode()) as port:
        url = f"redis://koster:{QUOTED}@127.0.0.1:{port}/0"
        with closing(RedisStorage(url, "koster", 60)) as storage:
            calls: list[Callable[[], object]] = [
                storage.connect,
                lambda: storage.get(A),
                lambda: storage.put(A, COPY, "a"),
                lambda: storage.claim(A, "a", now=0.0, secs=SECS),
                lambda: list(storage.sites()),
            ]
            errors = []
            for call in calls:
                try:
                    call()
                except StorageError as error:
                    errors.append(error)
    # connect and put do not look at the type of an answer.
    assert len(errors) >= len(calls) - 2 * (answer == ANSWERS["other types"])
    for each in errors:
        assert f"127.0.0.1:{port} failed" in str(each)
        assert "s3cret" not in str(each)
        assert each.__suppress_context__


@pytest.mark.parametrize("password", ["quo'te\"s", "x2" * 100], ids=["quotes", "long"])
def test_a_server_that_does_not_know_hello_quotes_the_password_to_nobody(password: str) -> None:
    """Redis shows the first 128 bytes of an argument, escaped: a part of it is enough to be one."""
    with redis_server("--rename-command", "HELLO", "", protocol=2) as server:
        said = failure_of(server.url(f"koster:{quote(password, safe='')}@"))
    assert "while logging in" in said
    assert not re.search(r"AUTH|x2x2|quo", said)


@pytest.mark.parametrize(
    "url",
    [f"redis://:{PASSWORD}@127.0.0.1:1/0", f"redis://:{QUOTED}@127.0.0.1:1/0?ssl_nothing=1"],
)
def test_a_url_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(StorageError, match="KOSTER_REDIS_URL") as caught:
        RedisStorage(url, "koster", 60)
    assert "s3cret" not in str(caught.value)
