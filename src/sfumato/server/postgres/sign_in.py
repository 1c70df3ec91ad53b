"""From the first byte of a client to its sign-in: TLS, startup message, SCRAM-SHA-256.

An unknown user, a wrong token, a token without the right to ask and a data set that is not granted end here. Before a
client has proved a token, all failures have the same message.
"""

from __future__ import annotations

import asyncio
import ssl
import struct
from dataclasses import dataclass

from sfumato.errors import SfumatoError
from sfumato.server.postgres.channel import ClientChannel
from sfumato.server.postgres.messages import (
    CancelRequest,
    MalformedMessage,
    Startup,
    error_response,
    message,
    parse_startup,
)
from sfumato.server.postgres.scram import MECHANISM, PLUS, AuthenticationFailed, ScramExchange
from sfumato.server.service import QueryService

__all__ = ["Refused", "SignedIn", "Tls", "sign_in"]

_SSL_REQUEST, _GSS_REQUEST = 80877103, 80877104
_LARGEST_STARTUP = 10_000


@dataclass(frozen=True, kw_only=True)
class Tls:
    """The server's certificate, loaded."""

    context: ssl.SSLContext
    binding: bytes
    """Channel binding of the certificate."""


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """A client that proved a token of a user."""

    user: str
    token: str
    dataset: str
    startup: Startup


class Refused(Exception):
    """The connection ends with this message."""

    def __init__(self, code: str, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.message = error_response(code=code, text=text, hint=hint, severity="FATAL")


async def sign_in(channel: ClientChannel, service: QueryService, tls: Tls | None) -> SignedIn | CancelRequest:
    """Who a client is, or its request to cancel a question of another connection."""
    first = await _startup(channel, tls)
    if isinstance(first, CancelRequest):
        return first
    if tls is not None and not channel.encrypted:
        raise Refused("28000", "connections without TLS are refused", "Connect with sslmode=require or stronger.")
    user = first.parameters.get("user", "")
    if not user:
        raise Refused("28000", "no user name was given")
    if "replication" in first.parameters:
        raise Refused("0A000", "replication is not supported")
    unknown = [name for name in first.parameters if name.startswith("_pq_.")]
    if first.newer_minor or unknown:
        names = b"".join(name.encode() + b"\0" for name in unknown)
        channel.write(message(b"v", struct.pack("!ii", 0, len(unknown)) + names))
    token = await _authenticate(channel, service, user, tls)
    dataset = first.parameters.get("database") or user

    def visible() -> None:
        service.schema(service.tokens.authenticated(token), dataset)

    try:
        await asyncio.to_thread(visible)
    except SfumatoError:
        raise Refused(
            "3D000", f'database "{dataset[:80]}" does not exist', "Databases are the data sets that you may ask about."
        ) from None
    return SignedIn(user=user, token=token, dataset=dataset, startup=first)


async def _startup(channel: ClientChannel, tls: Tls | None) -> Startup | CancelRequest:
    for _ in range(4):
        body = await channel.read_startup(_LARGEST_STARTUP)
        code = struct.unpack("!i", body[:4])[0] if len(body) == 4 else None
        if code not in (_SSL_REQUEST, _GSS_REQUEST):
            return parse_startup(body)
        accepted = code == _SSL_REQUEST and tls is not None and not channel.encrypted
        channel.write(b"S" if accepted else b"N")
        await channel.flush()
        if accepted and tls is not None:
            if channel.unread:  # sent in the clear by somebody between client and server
                raise MalformedMessage("bytes were sent before TLS began")
            await channel.start_tls(tls.context)
    raise MalformedMessage("no startup message was sent")


async def _authenticate(channel: ClientChannel, service: QueryService, user: str, tls: Tls | None) -> str:
    """The identifier of the token that the client has."""
    login = await asyncio.to_thread(service.tokens.scram_login, user)
    exchange = ScramExchange(login, binding=tls.binding if tls is not None and channel.encrypted else None)
    offered = [PLUS, MECHANISM] if channel.encrypted and tls is not None else [MECHANISM]
    names = b"".join(name.encode() + b"\0" for name in offered)
    channel.write(message(b"R", struct.pack("!i", 10) + names + b"\0"))
    try:
        body = await _password_message(channel)
        mechanism, end, rest = body.partition(b"\0")
        if not end or len(rest) < 4:
            raise AuthenticationFailed
        channel.write(
            message(b"R", struct.pack("!i", 11) + exchange.first(mechanism.decode("ascii", "replace"), rest[4:]))
        )
        token, proof = exchange.final(await _password_message(channel))
    except AuthenticationFailed:
        raise Refused(
            "28P01", f'password authentication failed for user "{user[:80]}"', "The password is an API token, sfu_..."
        ) from None
    channel.write(message(b"R", struct.pack("!i", 12) + proof))
    channel.write(message(b"R", struct.pack("!i", 0)))
    return token


async def _password_message(channel: ClientChannel) -> bytes:
    await channel.flush()
    kind, body = await channel.read_message(largest=_LARGEST_STARTUP, idle=None)
    if kind != b"p":
        raise MalformedMessage("a password message was expected")
    return body
