"""CSRF protection: requests that change something must come from the service's own pages."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Collection

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.web.refusals import refuse
from sfumato.web.sessions import BrowserSession

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class CsrfCheck:
    """Refuse requests that change something unless they come from the same origin and repeat the session's token.

    A request is checked if its method is not safe. ``Sec-Fetch-Site`` must be ``same-origin`` or ``none`` where a
    browser sends it, ``Origin`` must be an address of the service, and ``X-CSRF-Token`` must be the token of the
    session in the cookie. Requests without that cookie are not checked for a token: no ambient credential is used.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        origins: Collection[str],
        cookie: str,
        session: Callable[[str | None], BrowserSession | None],
    ) -> None:
        self._app, self._origins, self._cookie, self._session = app, frozenset(origins), cookie, session

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and scope["method"] in _SAFE):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        foreign = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")
        if foreign or (origin is not None and origin not in self._origins):
            await refuse(scope, receive, send, 403, "The request comes from a page of another site.")
            return
        session = self._session(cookie_parser(headers.get("cookie", "")).get(self._cookie))
        if session is not None and not hmac.compare_digest(
            headers.get("x-csrf-token", "").encode(), session.csrf.encode()
        ):
            await refuse(scope, receive, send, 403, "The CSRF token is missing or wrong.", "Reload the page.")
            return
        await self._app(scope, receive, send)
