"""HTTPS service of one party, with mutual TLS: `POST /join`, `/deal`, `/contribute`, `/unmask` and `/compute`.

The analyst is who the client's certificate names. Bodies are JSON. Whatever a client sends, the reply is an
announcement, masked numbers, or an error with a code; the log names paths and status, never a value. After `/compute`
the connection carries frames (:mod:`.streams`).
"""

from __future__ import annotations

import base64
import json
import logging
import socket
import ssl
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sfumato.errors import AnswerFailed, QueryRefused, SfumatoError, TooManyRequests
from sfumato.parties.messages import packed, unpacked
from sfumato.parties.party import Party
from sfumato.parties.question import PartiesQuestion
from sfumato.parties.secure_sum import Announcement
from sfumato.parties.streams import ERROR, MESSAGES, RESULT, UPGRADE, read_frame, write_frame

_log = logging.getLogger(__name__)
_LARGEST = 32 << 20
_SECONDS = 30.0
"""How long a client may take to say something."""
_FRAME_SECONDS = 600.0
"""How long the other parties of a computation may take for one step."""
_MOST_AT_ONCE = 64
_PATHS = ("/join", "/deal", "/contribute", "/unmask", "/compute")


class PartyServer(ThreadingHTTPServer):
    """Serves one party until :meth:`shutdown`."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], *, party: Party, context: ssl.SSLContext) -> None:
        self.party, self._context = party, context
        self._free = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.server_address[1])

    def finish_request(self, request: Any, client_address: object) -> None:
        """Shake hands in the thread of the connection: a client that stays silent holds up nobody else."""
        request.settimeout(_SECONDS)
        with self._context.wrap_socket(request, server_side=True) as secure:
            super().finish_request(secure, client_address)

    def process_request(self, request: Any, client_address: object) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: object) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke off, or a client without a valid certificate."""
        kind = sys.exc_info()[0]
        _log.info("connection refused or lost (%s)", "unknown" if kind is None else kind.__name__)


class _Handler(BaseHTTPRequestHandler):
    server: PartyServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sfumato", ""

    def do_POST(self) -> None:
        self.close_connection, self._switched = True, False
        try:
            if self.path == "/compute":
                write_frame(self.wfile, RESULT, self._compute(self._body()))
                return
            status, reply = HTTPStatus.OK, self._reply(self._body())
        except SfumatoError as error:
            status, reply = _status(error), error.to_dict()
        except (TimeoutError, OSError):
            return
        except Exception:
            # Nothing of the reason leaves the party: it could depend on the data.
            failure = AnswerFailed("The party could not compute a reply.", fix="Ask its owner.")
            status, reply = HTTPStatus.INTERNAL_SERVER_ERROR, failure.to_dict()
        data = json.dumps(reply).encode()
        if self._switched:
            write_frame(self.wfile, ERROR, data)
            return
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _reply(self, body: dict[str, object]) -> dict[str, Any]:
        party, analyst = self.server.party, self._analyst()
        match self.path:
            case "/join":
                return party.join(PartiesQuestion.from_dict(body), analyst=analyst).to_dict()
            case "/deal":
                digest, said = _fields(body, {"question": str, "announcements": list})
                sealed = party.deal(digest, [Announcement.from_dict(each) for each in said], analyst=analyst)
                return {"sealed": packed(sealed)}
            case "/contribute":
                digest, said, own = _fields(body, {"question": str, "announcements": list, "sealed": dict})
                announcements = [Announcement.from_dict(each) for each in said]
                masked = party.contribute(digest, announcements, unpacked(own), analyst=analyst)
                return {"masked": base64.b64encode(masked.astype("<u8").tobytes()).decode()}
            case "/unmask":
                digest, survivors = _fields(body, {"question": str, "survivors": list})
                if not all(isinstance(name, str) for name in survivors):
                    raise _malformed()
                return {"shares": packed(party.unmask(digest, survivors, analyst=analyst))}
            case _:
                raise QueryRefused(f"A party answers POST {', '.join(_PATHS)}.")

    def _compute(self, body: dict[str, object]) -> bytes:
        """The party's shares of the result. The connection switches to frames with the first one."""
        digest, said = _fields(body, {"question": str, "announcements": list})
        announcements = [Announcement.from_dict(each) for each in said]

        def transfer(frame: bytes) -> bytes:
            if not self._switched:
                self.send_response(HTTPStatus.SWITCHING_PROTOCOLS)
                self.send_header("Connection", "Upgrade")
                self.send_header("Upgrade", UPGRADE)
                self.end_headers()
                self.connection.settimeout(_FRAME_SECONDS)
                self._switched = True
            write_frame(self.wfile, MESSAGES, frame)
            return read_frame(self.rfile)[1]

        return self.server.party.compute(digest, announcements, transfer, analyst=self._analyst())

    def _analyst(self) -> str:
        connection = self.connection
        assert isinstance(connection, ssl.SSLSocket)
        found = dict(pair for names in (connection.getpeercert() or {}).get("subject", ()) for pair in names)  # type: ignore[misc]
        name = str(found.get("commonName", ""))
        if not name or name.startswith("@"):
            raise QueryRefused("The certificate names no analyst.", fix="Use one with a common name.")
        return name

    def _body(self) -> dict[str, object]:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > _LARGEST:
            raise QueryRefused("The message has no length, or is too long.")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise QueryRefused("The message is not a JSON object.")
        return body

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        path = self.path if getattr(self, "path", None) in _PATHS else "?"
        _log.info("%s %s", path, args[1] if len(args) > 1 else "")


def _fields(body: dict[str, object], kinds: dict[str, type]) -> tuple[Any, ...]:
    """The fields of a message in the order of their names; anything else is refused."""
    if set(body) != set(kinds) or not all(isinstance(body[name], kind) for name, kind in kinds.items()):
        raise _malformed()
    return tuple(body[name] for name in kinds)


def _malformed() -> QueryRefused:
    return QueryRefused("The message is not well-formed.", fix="Use the same version everywhere.")


def _status(error: SfumatoError) -> HTTPStatus:
    match error:
        case AnswerFailed():
            return HTTPStatus.INTERNAL_SERVER_ERROR
        case TooManyRequests():
            return HTTPStatus.TOO_MANY_REQUESTS
        case _:
            return HTTPStatus.UNPROCESSABLE_ENTITY
