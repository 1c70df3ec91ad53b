"""Channels to a party: in the same process, for simulations, or over HTTPS with mutual TLS."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from http import HTTPStatus
from io import BufferedIOBase
from typing import Any
from urllib.parse import urlsplit

from sfumato.errors import (
    AnswerFailed,
    OverBudget,
    PartyFailed,
    QueryRefused,
    SfumatoError,
    TooManyRequests,
    UnknownBudget,
)
from sfumato.parties.agreement import Agreement
from sfumato.parties.messages import packed, unpacked
from sfumato.parties.party import Party
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.residues import BYTES, Residues, from_bytes
from sfumato.parties.secure_sum import Announcement
from sfumato.parties.streams import ERROR, MESSAGES, UPGRADE, LocalStream, read_frame

_LARGEST = 256 << 20


@dataclass(frozen=True, kw_only=True)
class LocalChannel:
    """A party in this process."""

    party: Party
    analyst: str

    def join(self, question: PartiesQuestion) -> Announcement:
        return self.party.join(question, analyst=self.analyst)

    def deal(self, digest: str, announcements: Sequence[Announcement]) -> dict[str, bytes]:
        return self.party.deal(digest, announcements, analyst=self.analyst)

    def contribute(
        self, digest: str, announcements: Sequence[Announcement], sealed: Mapping[str, bytes], size: int
    ) -> Residues:
        return self.party.contribute(digest, announcements, sealed, analyst=self.analyst)

    def unmask(self, digest: str, survivors: Sequence[str]) -> dict[str, bytes]:
        return self.party.unmask(digest, survivors, analyst=self.analyst)

    def compute(self, digest: str, announcements: Sequence[Announcement]) -> LocalStream:
        return LocalStream(lambda transfer: self.party.compute(digest, announcements, transfer, analyst=self.analyst))


@dataclass(frozen=True, kw_only=True)
class HttpsChannel:
    """A party behind `sfumato party serve`. A reply that does not fit raises ``PartyFailed``."""

    name: str
    address: str
    context: ssl.SSLContext
    seconds: float = 600.0

    def join(self, question: PartiesQuestion) -> Announcement:
        reply = self._post("/join", asdict(question))
        try:
            return Announcement.from_dict(reply)
        except QueryRefused:
            raise self.nonsense() from None

    def deal(self, digest: str, announcements: Sequence[Announcement]) -> dict[str, bytes]:
        body = {"question": digest, "announcements": [each.to_dict() for each in announcements]}
        return self._shares(self._post("/deal", body).get("sealed"))

    def unmask(self, digest: str, survivors: Sequence[str]) -> dict[str, bytes]:
        return self._shares(self._post("/unmask", {"question": digest, "survivors": list(survivors)}).get("shares"))

    def _shares(self, document: object) -> dict[str, bytes]:
        try:
            return unpacked(document)
        except QueryRefused:
            raise self.nonsense() from None

    def contribute(
        self, digest: str, announcements: Sequence[Announcement], sealed: Mapping[str, bytes], size: int
    ) -> Residues:
        said = [each.to_dict() for each in announcements]
        body = {"question": digest, "announcements": said, "sealed": packed(sealed)}
        text = self._post("/contribute", body).get("masked")
        try:
            data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
        except ValueError:
            data = b""
        if len(data) != size * BYTES:
            raise self.nonsense()
        return from_bytes(data)

    def compute(self, digest: str, announcements: Sequence[Announcement]) -> HttpsStream:
        body = {"question": digest, "announcements": [each.to_dict() for each in announcements]}
        return HttpsStream(self, json.dumps(body))

    def connection(self) -> http.client.HTTPSConnection:
        parts = urlsplit(self.address)
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, timeout=self.seconds, context=self.context
        )

    @contextmanager
    def translated(self) -> Iterator[None]:
        """What can go wrong with a connection, as ``PartyFailed``."""
        try:
            yield
        except ssl.SSLCertVerificationError:
            raise PartyFailed(
                f"The certificate of party {self.name} is not valid for its address.", fix="Compare the authorities."
            ) from None
        except ssl.SSLError:
            raise PartyFailed(
                f"Party {self.name} cannot be reached: it refuses this certificate.",
                fix="Use an analyst's certificate of the authority that the parties trust.",
            ) from None
        except (OSError, http.client.HTTPException):
            raise PartyFailed(f"Party {self.name} cannot be reached.", fix="Ask its owner.") from None
        except (ValueError, RecursionError):
            raise self.nonsense() from None

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, object]:
        with self.translated(), closing(self.connection()) as connection:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            return self.document(connection.getresponse())

    def document(self, response: http.client.HTTPResponse) -> dict[str, object]:
        """The content of a reply; a refusal is raised."""
        text = response.read(_LARGEST + 1)
        document = json.loads(text) if len(text) <= _LARGEST else None
        if not isinstance(document, dict):
            raise self.nonsense()
        if response.status == HTTPStatus.OK:
            return document
        raise self.refusal(document.get("error"))

    def nonsense(self) -> PartyFailed:
        return PartyFailed(f"Party {self.name} sent something that is no reply.", fix="Ask its owner.")

    def refusal(self, error: object) -> SfumatoError:
        """A party's refusal as the error that it is; its words are shortened."""
        if not isinstance(error, dict) or not all(
            isinstance(error.get(key), str) for key in ("code", "message", "fix")
        ):
            return self.nonsense()
        kinds = (QueryRefused, OverBudget, UnknownBudget, AnswerFailed, TooManyRequests)
        kind = next((kind for kind in kinds if kind.code == error["code"]), QueryRefused)
        text, fix = (" ".join(error[key][:500].split()) for key in ("message", "fix"))
        return kind(text if self.name in text else f"Party {self.name}: {text}", fix=fix)


class HttpsStream:
    """A computation with a party behind `sfumato party serve`: a request whose connection then carries frames."""

    def __init__(self, channel: HttpsChannel, body: str) -> None:
        self._channel = channel
        self._connection = channel.connection()
        self._frames: BufferedIOBase | None = None
        headers = {"Content-Type": "application/json", "Connection": "Upgrade", "Upgrade": UPGRADE}
        with channel.translated():
            self._connection.request("POST", "/compute", body, headers)

    def receive(self) -> tuple[bytes, bytes]:
        channel = self._channel
        with channel.translated():
            if self._frames is None:
                response = self._connection.getresponse()
                if response.status != HTTPStatus.SWITCHING_PROTOCOLS:
                    channel.document(response)
                    raise channel.nonsense()
                self._frames = response.fp
            try:
                kind, content = read_frame(self._frames)
            except PartyFailed:
                raise PartyFailed(f"Party {channel.name} stopped.", fix="Ask its owner.") from None
            if kind == ERROR:
                document = json.loads(content)
                raise channel.refusal(document.get("error") if isinstance(document, dict) else None)
        return kind, content

    def send(self, frame: bytes) -> None:
        with self._channel.translated():
            self._connection.sock.sendall(MESSAGES + len(frame).to_bytes(4, "big") + frame)

    def close(self) -> None:
        self._connection.close()


def https_channels(agreement: Agreement, context: ssl.SSLContext, *, seconds: float = 600.0) -> dict[str, HttpsChannel]:
    """The channels to all parties of an agreement."""
    return {
        name: HttpsChannel(name=name, address=party.address, context=context, seconds=seconds)
        for name, party in agreement.parties.items()
    }
