"""Run the app on this machine: bind a port, print the sign-in link, serve until interrupted."""

from __future__ import annotations

import atexit
import html
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from sfumato.web import OneTimeTokens, listening_socket

_HOST = "127.0.0.1"
_REDIRECT = """<!doctype html><meta charset="utf-8"><title>sfumato</title>
<meta http-equiv="refresh" content="0;url={link}"><p><a href="{link}">Open sfumato</a></p>
"""


def sign_in_link(address: str, token: str) -> str:
    """The link that signs in. Behind the ``#``, a token is not sent with requests and appears in no log.

    >>> sign_in_link("http://127.0.0.1:8000", "TOKEN")
    'http://127.0.0.1:8000/#sign-in=TOKEN'
    """
    return f"{address}/#sign-in={token}"


def serve(data: str | None, *, port: int, browser: bool, write: Callable[[str], None]) -> None:
    """Serve the app until it is interrupted. ``write`` prints a line for the user."""
    listener = listening_socket(_HOST, port, fix="Choose another with --port, or leave it out.")
    listener.listen()
    address = f"http://{_HOST}:{listener.getsockname()[1]}"
    tokens = OneTimeTokens(seconds=24 * 3600)

    def link() -> str:
        return sign_in_link(address, tokens.issue())

    def signed_in() -> None:
        write(f"Signed in. For another browser: {link()}")

    # The libraries load while the browser starts; its first request waits in the queue of the socket.
    if browser:
        threading.Thread(target=_open_browser, args=(link(),), daemon=True).start()
    import uvicorn

    from sfumato.app.service import create_app
    from sfumato.app.workspace import AppWorkspace

    workspace = AppWorkspace(Path.cwd())
    try:
        if data is not None:
            workspace.open(data)
        workspace.start_forms()
        app = create_app(workspace, port=listener.getsockname()[1], tokens=tokens, signed_in=signed_in)
        settings = uvicorn.Config(app, log_level="error", access_log=False, server_header=False, date_header=False)
        write(f"sfumato app: {link()}\nOnly this machine can reach it. Press Ctrl+C to end.")
        uvicorn.Server(settings).run(sockets=[listener])
    finally:
        workspace.close()


def _open_browser(link: str) -> None:
    """Open the link by a file that only this user can read: everybody sees the command line with the address."""
    import webbrowser

    folder = Path(tempfile.mkdtemp(prefix="sfumato-"))  # mode 0700
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    page = folder / "open.html"
    page.touch(mode=0o600)
    page.write_text(_REDIRECT.format(link=html.escape(link)), encoding="utf-8")
    webbrowser.open(page.as_uri())
