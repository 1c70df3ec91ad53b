"""Static files of a built front end: a page, scripts and styles, compressed once and cached by name."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sfumato.web.refusals import refusal

_COMPRESSED = (".html", ".js", ".css", ".svg", ".json")


class StaticBundle:
    """Serve the files of one folder from memory. Paths without a file name get the page, so that links can be opened.

    Paths under ``/api/`` are no pages: a request for an operation that does not exist is refused.
    Only files found when the bundle is read are served, so that a path cannot lead outside the folder. Files with a
    hash in their name (``name-0A1B2C3D.js``) never change and are cached; the page is checked on every load.
    """

    def __init__(self, folder: Path, *, page: str = "index.html") -> None:
        self._folder, self._page = folder, page

    @cached_property
    def files(self) -> dict[str, tuple[bytes, bytes, str]]:
        """Path of each file to its content, its compressed content and its tag."""
        found = {}
        for path in sorted(self._folder.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                packed = gzip.compress(content, mtime=0) if path.suffix in _COMPRESSED else b""
                tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
                found[path.relative_to(self._folder).as_posix()] = (content, packed, tag)
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.response(scope)(scope, receive, send)

    def response(self, scope: Scope) -> Response:
        """The file that a request names."""
        headers = Headers(scope=scope)
        path = str(scope["path"]).removeprefix(str(scope.get("root_path", ""))).lstrip("/")
        name = path if path in self.files else self._page
        missing = name != path and (path.startswith("api/") or "." in path.rpartition("/")[2])
        if scope["method"] not in ("GET", "HEAD") or missing:
            return refusal(404, "There is no such page.")
        content, packed, tag = self.files[name]
        hashed = "-" in name and name != self._page
        facts = {
            "etag": tag,
            "vary": "accept-encoding",
            "cache-control": "public, max-age=31536000, immutable" if hashed else "no-cache",
        }
        if headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=facts)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if packed and "gzip" in headers.get("accept-encoding", ""):
            return Response(packed, headers={**facts, "content-encoding": "gzip"}, media_type=kind)
        return Response(content, headers=facts, media_type=kind)


def front_end(page: str) -> StaticBundle:
    """The built front end: ``index.html`` is the app, ``server.html`` the pages of the server."""
    return StaticBundle(Path(str(files("sfumato.web") / "static")), page=page)
