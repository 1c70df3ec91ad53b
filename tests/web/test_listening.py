"""Listening sockets."""

from __future__ import annotations

import asyncio
import socket

from sfumato.web import listening_socket


def test_accepted_connections_do_not_wait_for_acknowledgements() -> None:
    """Headers and body are two writes: with Nagle's algorithm the second waits 40 ms on a kept-alive connection."""

    async def no_delay() -> int:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            told.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = listening_socket("127.0.0.1", 0, fix="")
        server = await asyncio.start_server(accept, sock=listener)
        _, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            return await asyncio.wait_for(told, 10)
        finally:
            writer.close()
            server.close()

    assert asyncio.run(no_delay())
