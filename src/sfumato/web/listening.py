"""Listening sockets: a service binds its ports before it starts anything, so that a busy port is refused in words."""

from __future__ import annotations

import socket

from sfumato.errors import BadParameter


def listening_socket(host: str, port: int, *, fix: str) -> socket.socket:
    """A socket bound to this address; refused if the port is taken or not allowed. ``fix`` says what to do then."""
    # asyncio sets TCP_NODELAY only where the protocol is stated; without it, the body of an answer waits for the
    # client's delayed acknowledgement of the headers.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise BadParameter(f"port {port} of {host} is in use or not allowed.", fix=fix, port=port) from None
    return listener
