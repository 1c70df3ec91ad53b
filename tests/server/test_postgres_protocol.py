"""The PostgreSQL protocol against hostile and broken clients: bytes as they go over the wire."""

from __future__ import annotations

import random
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from postgres_sample import Served, running, serving
from server_sample import analyst, self_signed, token
from sfumato.errors import BadParameter
from sfumato.server.postgres.endpoint import EndpointLimits, PostgresEndpoint

psycopg = pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")

COUNT = "SELECT COUNT(*) AS n FROM patients"
QUICK = EndpointLimits(stall_seconds=1.0, message_bytes=100_000)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("postgres"), limits=QUICK) as endpoint:
        yield endpoint


class Raw:
    """A client that sends any bytes, and signs in by SCRAM where it is told to."""

    def __init__(self, served: Served, *, sign_in: bool = True, user: str = "alice") -> None:
        self.socket: Any = socket.create_connection(("127.0.0.1", served.port), timeout=8)
        self.key = b""
        if sign_in:
            self.sign_in(user, served.token)

    def startup(self, user: str) -> None:
        body = (
            struct.pack("!i", 196608) + f"user\0{user}\0database\0hospital\0options\0-c sfumato.epsilon=1\0\0".encode()
        )
        self.socket.sendall(struct.pack("!i", len(body) + 4) + body)

    def sign_in(self, user: str, secret: str) -> None:
        import base64
        import hashlib
        import hmac

        self.startup(user)
        assert self.read()[0] == b"R"
        bare = "n=,r=abcdefghijkl"
        self.send(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(bare) + 3) + b"n,," + bare.encode())
        _, body = self.read()
        first = body[4:].decode()
        fields = dict(part.split("=", 1) for part in first.split(","))
        salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c=biws,r={fields['r']}"
        signed = f"{bare},{first},{without}".encode()
        signature = hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        self.send(b"p", f"{without},p={proof}".encode())
        _, body = self.read()
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        assert body[4:] == b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha256"))
        for kind, body in self.until_ready():
            if kind == b"K":
                self.key = body

    def send(self, kind: bytes, body: bytes = b"") -> None:
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def read(self) -> tuple[bytes, bytes]:
        head = self._exactly(5)
        return head[:1], self._exactly(struct.unpack("!i", head[1:])[0] - 4)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def until_ready(self) -> list[tuple[bytes, bytes]]:
        messages = []
        while True:
            messages.append(self.read())
            if messages[-1][0] == b"Z":
                return messages

    def until_closed(self) -> list[tuple[bytes, bytes]]:
        messages = []
        try:
            while True:
                messages.append(self.read())
        except (EOFError, ConnectionError):
            return messages


def fields(body: bytes) -> dict[str, str]:
    """The fields of an error."""
    return {part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part}


def healthy(served: Served) -> None:
    """Another client is answered."""
    with psycopg.connect(served.url(), autocommit=True) as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("message", [(b"P", b"s\0DELETE FROM patients\0\0\0"), (b"D", b"Sunknown\0")])
def test_an_error_is_sent_before_sync(served: Served, message: tuple[bytes, bytes]) -> None:
    """Drivers such as asyncpg send Flush, wait for the error, and only then Sync."""
    client = Raw(served)
    client.send(*message)
    client.send(b"H")
    assert client.read()[0] == b"E"
    client.send(b"S")
    assert client.until_ready()[-1][1] == b"I"


@pytest.mark.parametrize(
    "junk",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        struct.pack("!i", 8) + b"\0\1\0\0",
        struct.pack("!ii", 9, 196608) + b"x",
        struct.pack("!ii", 12, 196608) + b"user",
        b"\x16\x03\x01\x02\x00\x01\x00",
        struct.pack("!ii", 8, 80877102),
        struct.pack("!ii", 8, 80877103) * 6,
    ],
)
def test_junk_before_sign_in_ends_the_connection(served: Served, junk: bytes) -> None:
    client = Raw(served, sign_in=False)
    client.socket.sendall(junk)
    client.socket.shutdown(socket.SHUT_WR)
    assert all(kind in (b"E", b"N") for kind, _ in client.until_closed() if kind != b"N")
    healthy(served)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (b"P", b"no end"),
        (b"P", b"s\0SELECT 1\0\xff\xff"),
        (b"P", b"s\0SELECT 1\0\x7f\xff"),
        (b"B", b"\0\0\0\1\0\7\0\0\0\0"),
        (b"B", b"\0\0\0\0\0\1\x7f\xff\xff\xff\0\0"),
        (b"D", b"Xname\0"),
        (b"E", b"\0\0"),
        (b"Q", b"SELECT 1"),
        (b"Q", b"SELECT '\xff\xfe'\0"),
        (b"Q", b"SELECT 1\0SELECT 2\0"),
        (b"F", b"\0\0\0\1"),
        (b"!", b""),
    ],
)
def test_a_malformed_message_is_a_fatal_error(served: Served, kind: bytes, body: bytes) -> None:
    client = Raw(served)
    client.send(kind, body)
    messages = client.until_closed()
    assert messages[-1][0] == b"E"
    assert fields(messages[-1][1])["C"] == "08P01"
    healthy(served)


def test_a_message_of_100_megabytes_is_not_read(served: Served) -> None:
    client = Raw(served)
    client.socket.sendall(b"Q" + struct.pack("!i", 100_000_000) + b"SELECT ")
    messages = client.until_closed()
    assert fields(messages[-1][1])["C"] == "54000"
    healthy(served)


def dribble(client: Raw) -> None:
    """Send one byte after the other, until the server has enough of it."""
    client.socket.settimeout(0.2)
    for _ in range(40):
        client.socket.sendall(b"a")
        with suppress(TimeoutError):
            client.read()


def test_a_client_of_one_byte_at_a_time_is_left_after_the_stall(served: Served) -> None:
    for signed_in in (True, False):
        client = Raw(served, sign_in=signed_in)
        began = time.monotonic()
        client.socket.sendall((b"Q" if signed_in else b"") + struct.pack("!i", 60))
        with pytest.raises((EOFError, ConnectionError)):
            dribble(client)
        assert time.monotonic() - began < 6
    healthy(served)


@pytest.mark.parametrize("opening", ["(", "[", "CASE WHEN (", "NOT ("])
def test_10_000_nested_parentheses_are_refused(served: Served, opening: str) -> None:
    with psycopg.connect(served.url(), autocommit=True) as client:
        for sql in (f"SELECT COUNT(*) FROM patients WHERE {opening * 10_000}", f"SELECT {opening * 10_000}1"):
            with pytest.raises(psycopg.Error):
                client.execute(sql[:90_000])
        assert client.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "sql", ["SELECT " + "NOT " * 5000 + "true", "SELECT " + "1 + " * 5000 + "1", "SELECT " + "- " * 5000 + "1"]
)
def test_deep_expressions_without_parentheses_do_not_end_the_server(served: Served, sql: str) -> None:
    with psycopg.connect(served.url(), autocommit=True) as client:
        with suppress(psycopg.DatabaseError):  # refused or answered
            client.execute(sql)
        assert client.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_vanishes_ends_its_question_and_never_pays_twice(served: Served) -> None:
    analyst(served.service, "vera", epsilon=100)
    secret = token(served.service, "vera")
    client = Raw(served, sign_in=False)
    client.sign_in("vera", secret)
    client.send(b"Q", f"{COUNT}\0".encode())
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.close()  # a reset, not a farewell
    principal = served.service.users.get("vera").principal()
    for _ in range(100):
        if [one.state for one in served.service.questions(principal)] in (["done"], ["cancelled"]):
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the question runs on")
    with psycopg.connect(served.url(user="vera", password=secret), autocommit=True) as again:
        again.execute(COUNT)
        assert served.spent("vera") == 1
        assert len(again.execute("SELECT * FROM sfumato.questions").fetchall()) == 2


def test_after_an_error_messages_are_skipped_until_sync(served: Served) -> None:
    before = served.spent()
    client = Raw(served)
    client.send(b"P", b"s\0SELECT * FROM patients\0\0\0")
    client.send(b"D", b"Ss\0")
    client.send(b"P", b"t\0SELECT COUNT(*) FROM patients WHERE age > 77\0\0\0")
    client.send(b"B", b"\0t\0\0\0\0\0\0\0")
    client.send(b"E", b"\0\0\0\0\0")
    client.send(b"S")
    assert [kind for kind, _ in client.until_ready()] == [b"1", b"E", b"Z"]
    assert served.spent() == before
    client.send(b"S")
    assert [kind for kind, _ in client.until_ready()] == [b"Z"]


def test_a_wrong_cancel_key_does_nothing(served: Served) -> None:
    client = Raw(served)
    process = struct.unpack("!i", client.key[:4])[0]
    other = Raw(served, sign_in=False)
    other.socket.sendall(struct.pack("!iii", 16, 80877102, process) + b"\0\1\2\3")
    assert other.until_closed() == []
    client.send(b"Q", b"SELECT 1\0")
    assert [kind for kind, _ in client.until_ready()] == [b"T", b"D", b"C", b"Z"]


def test_fuzzed_messages_neither_charge_nor_stop_the_server(served: Served) -> None:
    """Valid conversations with bytes changed, removed and repeated; fixed seeds."""
    analyst(served.service, "fuzz", epsilon=100)
    secret = token(served.service, "fuzz")
    draw = random.Random(15)
    parts = [
        b"P" + struct.pack("!i", 37) + b"s\0SELECT * FROM patients WHERE a\0\0\0",
        b"D" + struct.pack("!i", 7) + b"Ss\0",
        b"B" + struct.pack("!i", 14) + b"\0s\0\0\0\0\0\0\0\0",
        b"E" + struct.pack("!i", 9) + b"\0\0\0\0\0",
        b"C" + struct.pack("!i", 7) + b"Ss\0",
        b"S" + struct.pack("!i", 4),
        b"H" + struct.pack("!i", 4),
        b"Q" + struct.pack("!i", 24) + b"SELECT * FROM sides\0",
        b"Q" + struct.pack("!i", 34) + b"SET sfumato.epsilon = 0.5; BEGIN\0",
    ]
    for _ in range(60):
        client = Raw(served, sign_in=False)
        client.sign_in("fuzz", secret)
        data = bytearray(b"".join(draw.choices(parts, k=draw.randint(1, 8))))
        for _ in range(draw.randint(0, 6)):
            place = draw.randrange(len(data))
            match draw.randrange(3):
                case 0:
                    data[place] = draw.randrange(256)
                case 1:
                    del data[place : place + draw.randint(1, 4)]
                case _:
                    data[place:place] = data[place : place + draw.randint(1, 9)]
            data = data or bytearray(b"S")
        client.socket.sendall(bytes(data))
        client.socket.shutdown(socket.SHUT_WR)
        client.until_closed()
    assert served.spent("fuzz") == 0
    healthy(served)


def test_tls_is_required_where_there_is_a_certificate(served: Served, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    assert key.stat().st_mode & 0o077 == 0
    with running(served.service, certificate=certificate, key=key) as endpoint:
        place = f"host=127.0.0.1 port={endpoint.port} dbname=hospital user=alice password={served.token}"
        for mode in ("verify-ca", "require channel_binding=require"):
            with psycopg.connect(f"{place} sslmode={mode} sslrootcert={certificate}", autocommit=True) as client:
                assert client.execute("SELECT 1").fetchone() == (1,)
                assert client.execute("SELECT * FROM pg_attribute").fetchone() is not None
        with pytest.raises(psycopg.OperationalError, match="without TLS"):
            psycopg.connect(f"{place} sslmode=disable")
        stuffed = socket.create_connection(("127.0.0.1", endpoint.port), timeout=8)
        stuffed.sendall(struct.pack("!ii", 8, 80877103) + b"injected before TLS")
        assert b"S" not in stuffed.recv(1000)[1:2]
        context = ssl.create_default_context(cafile=str(certificate))
        with pytest.raises((ssl.SSLError, OSError)):
            context.wrap_socket(stuffed, server_hostname="localhost")


def test_beyond_this_machine_only_with_tls(served: Served) -> None:
    with pytest.raises(BadParameter, match="only with TLS"):
        PostgresEndpoint(served.service, host="0.0.0.0")
    with pytest.raises(BadParameter, match="in use"):
        PostgresEndpoint(served.service, port=served.port)


def test_stopping_tells_the_clients(served: Served) -> None:
    with running(served.service) as endpoint:
        other = Served(service=served.service, endpoint=endpoint, port=endpoint.port, token=served.token)
        client = Raw(other)
    messages = client.until_closed()
    assert fields(messages[-1][1])["C"] == "57P01"
