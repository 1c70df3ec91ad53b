"""The byte stream of one client: plain, or TLS after the client asked for it.

TLS runs over memory buffers and not through ``loop.start_tls``, which keeps 256 KiB for every connection: a thousand
idle clients would need 256 MiB. Every read has a deadline, and a message is read only if its length is allowed.
"""

from __future__ import annotations

import asyncio
import ssl
import struct

from sfumato.server.postgres.messages import MalformedMessage

_CHUNK = 16_384


class TooLarge(Exception):
    """A client announced a message that is longer than allowed."""


class ClientChannel:
    """Reads and writes messages of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, stall: float) -> None:
        self._reader, self._writer = reader, writer
        self._stall = stall
        """Seconds in which a message that has begun must be complete, and in which a client must take what is sent."""
        self._tls: ssl.SSLObject | None = None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._plain = bytearray()
        self._pending = bytearray()

    @property
    def encrypted(self) -> bool:
        return self._tls is not None

    @property
    def unread(self) -> bool:
        """Whether bytes of the client wait: before TLS begins they would have been sent without protection."""
        return bool(self._plain)

    async def start_tls(self, context: ssl.SSLContext) -> None:
        """Encrypt from here on."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        async with asyncio.timeout(self._stall):
            while True:
                try:
                    self._tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    self._send_tls()
                    await self._receive()
            self._send_tls()
            await self._writer.drain()

    def _send_tls(self) -> None:
        if self._outgoing.pending:
            self._writer.write(self._outgoing.read())

    async def _receive(self) -> None:
        """Wait for bytes of the client and put them where they are decrypted, or read."""
        chunk = await self._reader.read(_CHUNK)
        if not chunk:
            raise ConnectionResetError("the client has gone")
        if self._tls is None:
            self._plain += chunk
        else:
            self._incoming.write(chunk)

    async def _fill(self) -> None:
        """At least one more byte of plain text."""
        if self._tls is None:
            await self._receive()
            return
        while True:
            try:
                part = self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                self._send_tls()
                await self._receive()
                continue
            if not part:
                raise ConnectionResetError("the client has gone")
            self._plain += part
            return

    async def _take(self, size: int) -> bytes:
        while len(self._plain) < size:
            await self._fill()
        part = bytes(self._plain[:size])
        del self._plain[:size]
        return part

    async def read_startup(self, largest: int) -> bytes:
        """A message without a type: all of it within the time for one message."""
        async with asyncio.timeout(self._stall):
            return await self._body(await self._take(4), largest)

    async def read_message(self, *, largest: int, idle: float | None) -> tuple[bytes, bytes]:
        """The next message, for which a client may wait ``idle`` seconds; begun, it must come within the time."""
        if not self._plain:
            async with asyncio.timeout(idle):
                await self._fill()
        async with asyncio.timeout(self._stall):
            head = await self._take(5)
            return head[:1], await self._body(head[1:], largest)

    async def _body(self, head: bytes, largest: int) -> bytes:
        (size,) = struct.unpack("!i", head)
        if size < 4:
            raise MalformedMessage("a length does not count itself")
        if size > largest:
            raise TooLarge
        return await self._take(size - 4)

    def write(self, data: bytes) -> None:
        """Keep bytes until :meth:`flush`."""
        self._pending += data

    @property
    def waiting(self) -> int:
        """How many bytes are kept."""
        return len(self._pending)

    async def flush(self) -> None:
        """Send what is kept. A client that does not take it in time is left."""
        if not self._pending:
            return
        data = bytes(self._pending)
        self._pending.clear()
        if self._tls is None:
            self._writer.write(data)
        else:
            for start in range(0, len(data), _CHUNK):
                self._tls.write(data[start : start + _CHUNK])
                self._send_tls()
        async with asyncio.timeout(self._stall):
            await self._writer.drain()

    async def until_gone(self) -> None:
        """Wait until the client has closed the connection. What it sends meanwhile is kept and read later."""
        try:
            while len(self._plain) + self._incoming.pending < _CHUNK:
                await self._receive()
        except ConnectionError:
            return
        await asyncio.get_running_loop().create_future()  # it sends further statements, so it is there

    def close(self) -> None:
        """End the connection without waiting."""
        self._writer.close()
