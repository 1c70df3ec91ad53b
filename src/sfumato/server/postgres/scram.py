"""SCRAM-SHA-256 (RFC 5802, RFC 7677) on the server's side. The password is an API token.

A user may have several tokens, and the salt is sent before it is known which of them a client has: all tokens of a
user share one salt, and a proof is checked against each. A name that nobody has gets a salt too, runs through the same
steps and fails at the end with the same message (:meth:`sfumato.server.tokens.Tokens.scram_login`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os

from sfumato.server.tokens import ScramLogin

MECHANISM = "SCRAM-SHA-256"
PLUS = "SCRAM-SHA-256-PLUS"


class AuthenticationFailed(Exception):
    """The proof is wrong, or the exchange does not follow the RFC. There is one message for all reasons."""


class ScramExchange:
    """One authentication: :meth:`first` answers the client's first message, :meth:`final` its last one."""

    def __init__(self, login: ScramLogin, *, binding: bytes | None = None) -> None:
        self._login = login
        self._binding = binding
        """Hash of the certificate where TLS is used: it ties the proof to this connection."""
        self._bare = self._server_first = self._header = ""
        self._nonce = ""
        self._plus = False

    def first(self, mechanism: str, message: bytes) -> bytes:
        """The server's first message: nonce, salt and iterations."""
        if mechanism not in (MECHANISM, PLUS):
            raise AuthenticationFailed
        text = _ascii(message)
        flag, _, rest = text.partition(",")
        authzid, _, bare = rest.partition(",")
        self._plus = mechanism == PLUS
        if self._plus:
            allowed = self._binding is not None and flag == "p=tls-server-end-point"
        else:
            # "y": the client supports channel binding and believes that the server does not. Where the server offered
            # it, somebody between them removed the offer.
            allowed = flag == "n" or (flag == "y" and self._binding is None)
        fields = bare.split(",")
        if (
            not allowed
            or authzid
            or len(fields) < 2
            or not fields[0].startswith("n=")
            or not fields[1].startswith("r=")
        ):
            raise AuthenticationFailed
        if not 8 <= len(fields[1]) <= 256:
            raise AuthenticationFailed
        self._header, self._bare = f"{flag},,", bare
        self._nonce = fields[1][2:] + base64.b64encode(os.urandom(18)).decode()
        salt = base64.b64encode(self._login.salt).decode()
        self._server_first = f"r={self._nonce},s={salt},i={self._login.iterations}"
        return self._server_first.encode()

    def final(self, message: bytes) -> tuple[str, bytes]:
        """The identifier of the token that the proof fits, and the server's own proof."""
        text = _ascii(message)
        without_proof, mark, proof_text = text.rpartition(",p=")
        fields = dict(field.split("=", 1) for field in without_proof.split(",") if "=" in field)
        try:
            proof = base64.b64decode(proof_text, validate=True)
            channel = base64.b64decode(fields.get("c", ""), validate=True)
        except (binascii.Error, ValueError):
            raise AuthenticationFailed from None
        expected = self._header.encode() + (self._binding or b"" if self._plus else b"")
        if not mark or len(proof) != 32 or channel != expected or fields.get("r") != self._nonce:
            raise AuthenticationFailed
        signed = f"{self._bare},{self._server_first},{without_proof}".encode()
        found = ""
        server_key = b""
        # A key that fits no proof stands for names without tokens: every name costs at least one check.
        for token, stored_key, key in [*((k.token, k.stored_key, k.server_key) for k in self._login.keys), _NOBODY]:
            signature = hmac.digest(stored_key, signed, "sha256")
            client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
            if hmac.compare_digest(hashlib.sha256(client_key).digest(), stored_key):
                found, server_key = token, key
        if not found:
            raise AuthenticationFailed
        return found, b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha256"))


_NOBODY = ("", bytes(32), bytes(32))


def _ascii(message: bytes) -> str:
    if len(message) > 2048:
        raise AuthenticationFailed
    try:
        return message.decode("utf-8")
    except UnicodeDecodeError:
        raise AuthenticationFailed from None
