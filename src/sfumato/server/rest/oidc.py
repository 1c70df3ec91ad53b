"""Sign-in at an OpenID Connect provider: authorization code flow with PKCE, by Authlib.

The user must exist on this server; the provider only says who signs in. State, nonce and the PKCE verifier travel in a
signed cookie that lives for ten minutes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from typing import Any

from authlib.integrations.httpx_client import AsyncOAuth2Client
from fastapi import APIRouter, Request
from httpx import HTTPError
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from starlette.responses import HTMLResponse, RedirectResponse, Response

from sfumato.errors import NotSignedIn
from sfumato.server.rest.context import ContextOf, ServerContext
from sfumato.server.rest.sign_in import open_session
from sfumato.server.settings import OidcSettings

_COOKIE = "sfumato-oidc"
_MINUTES = 10
_ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]


def oidc_router(settings: OidcSettings) -> APIRouter:
    """The two addresses of the flow."""
    router = APIRouter(tags=["sign-in"])

    def client() -> AsyncOAuth2Client:
        return AsyncOAuth2Client(
            settings.client_id, settings.client_secret.get_secret_value(), scope="openid profile email",
            code_challenge_method="S256", timeout=10,
        )  # fmt: skip

    async def fetch(session: AsyncOAuth2Client, address: str) -> dict[str, Any]:
        response = await session.request("GET", address, withhold_token=True)
        found: dict[str, Any] = response.raise_for_status().json()
        return found

    async def provider(session: AsyncOAuth2Client) -> dict[str, Any]:
        try:
            found = await fetch(session, f"{settings.issuer.rstrip('/')}/.well-known/openid-configuration")
        except (HTTPError, ValueError):
            raise _refused() from None
        if found.get("issuer", "").rstrip("/") != settings.issuer.rstrip("/"):
            raise _refused()
        return found

    @router.get("/oidc/start", operation_id="oidc_start", include_in_schema=False)
    async def start(request: Request, context: ContextOf) -> Response:
        context.limit_sign_in(request)
        verifier, nonce, state = (secrets.token_urlsafe(48) for _ in range(3))
        async with client() as session:
            found = await provider(session)
            address, _ = session.create_authorization_url(
                found["authorization_endpoint"], state=state, code_verifier=verifier, nonce=nonce,
                redirect_uri=_callback(request, context),
            )  # fmt: skip
        response = RedirectResponse(address, status_code=303)
        kept = _sign(
            context, {"state": state, "nonce": nonce, "verifier": verifier, "until": time.time() + _MINUTES * 60}
        )
        response.set_cookie(
            _COOKIE, kept, max_age=_MINUTES * 60, httponly=True, samesite="lax", secure=context.settings.secure
        )
        return response

    @router.get("/oidc/callback", operation_id="oidc_callback", include_in_schema=False)
    async def callback(request: Request, context: ContextOf) -> Response:
        context.limit_sign_in(request)
        kept = _opened(context, request.cookies.get(_COOKIE, ""))
        given = request.query_params
        if not kept or not hmac.compare_digest(given.get("state", "").encode(), kept["state"].encode()):
            raise _refused()
        try:
            async with client() as session:
                found = await provider(session)
                token = await session.fetch_token(
                    found["token_endpoint"], code=given.get("code", ""), code_verifier=kept["verifier"],
                    redirect_uri=_callback(request, context), grant_type="authorization_code",
                )  # fmt: skip
                keys = await fetch(session, found["jwks_uri"])
        except Exception:  # the provider refuses or cannot be reached; its words are not repeated
            raise _refused() from None
        claims = _claims(settings, str(token.get("id_token", "")), keys, nonce=kept["nonce"])
        user = context.service.users.get(str(claims.get(settings.user_claim, "")))
        # The session's cookie is not sent on a redirect that began on another site, so the page has a link.
        response = HTMLResponse("<!doctype html><html lang=en><title>Signed in</title><a href='/'>Continue</a>")
        open_session(context, user.name, response)
        response.delete_cookie(_COOKIE)
        return response

    return router


def _claims(settings: OidcSettings, token: str, keys: Any, *, nonce: str) -> dict[str, object]:
    """The claims of an identity token, after its signature, issuer, audience, times and nonce were checked."""
    try:
        decoded = jwt.decode(token, KeySet.import_key_set(keys), algorithms=_ALGORITHMS)
        rules = jwt.JWTClaimsRegistry(
            leeway=60, iss={"essential": True}, aud={"essential": True, "value": settings.client_id},
            exp={"essential": True}, nonce={"essential": True, "value": nonce},
        )  # fmt: skip
        rules.validate(decoded.claims)
    except (JoseError, ValueError, KeyError):
        raise _refused() from None
    if str(decoded.claims["iss"]).rstrip("/") != settings.issuer.rstrip("/"):
        raise _refused()
    return dict(decoded.claims)


def _callback(request: Request, context: ServerContext) -> str:
    scheme = "https" if context.settings.secure else "http"
    return f"{scheme}://{request.headers['host']}/oidc/callback"


def _sign(context: ServerContext, facts: dict[str, object]) -> str:
    body = base64.urlsafe_b64encode(json.dumps(facts).encode()).decode()
    return f"{body}.{_mac(context, body)}"


def _opened(context: ServerContext, cookie: str) -> dict[str, Any]:
    body, _, mac = cookie.partition(".")
    if not hmac.compare_digest(_mac(context, body).encode(), mac.encode()):
        return {}
    facts: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body))
    return facts if facts["until"] > time.time() else {}


def _mac(context: ServerContext, body: str) -> str:
    return hmac.new(context.service.state.secret, f"oidc {body}".encode(), hashlib.sha256).hexdigest()


def _refused() -> NotSignedIn:
    return NotSignedIn("The sign-in at the provider did not succeed.", fix="Start again at /oidc/start.")
