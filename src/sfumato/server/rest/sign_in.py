"""Operations of sign-in: password, one-time link, sign-out, the account itself and its tokens."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from sfumato.errors import AccessDenied, NoSuchItem
from sfumato.server.rest.context import ContextOf, PersonRoute, ServerContext, Who
from sfumato.server.rest.errors import ERRORS
from sfumato.server.rest.models import Credentials, Password, TokenBody
from sfumato.server.roles import Action, require
from sfumato.web import session_cookie

router = APIRouter(tags=["sign-in"], responses=ERRORS, route_class=PersonRoute)


def open_session(context: ServerContext, user: str, response: Response, *, by_link: bool = False) -> str:
    """Start a browser session; returns the CSRF token."""
    identifier, session = context.sessions.open(user, by_link=by_link)
    response.set_cookie(context.cookie, identifier, **session_cookie(secure=context.settings.secure))
    return session.csrf


@router.get("/api/v1/sign-in", operation_id="read_sign_in")
def read_sign_in(context: ContextOf) -> dict[str, Any]:
    """How people sign in: whether an OpenID Connect provider is set up."""
    return {"oidc": context.settings.oidc is not None}


@router.post("/api/v1/sign-in", operation_id="sign_in")
def sign_in(body: Credentials, request: Request, context: ContextOf) -> Response:
    """Sign in with a password; sets the session's cookie and returns the CSRF token."""
    context.limit_sign_in(request)
    user = context.passwords.authenticate(body.user, body.password, address=context.address(request))
    response = JSONResponse({})
    csrf = open_session(context, user.name, response)
    response.body = response.render({"user": user.name, "csrf": csrf})
    response.headers["content-length"] = str(len(response.body))
    return response


@router.post("/api/v1/sign-out", operation_id="sign_out", status_code=204)
def sign_out(request: Request, who: Who, context: ContextOf) -> Response:
    """End the browser session."""
    identifier = request.cookies.get(context.cookie)
    if identifier:
        context.sessions.close(identifier)
    response = Response(status_code=204)
    response.delete_cookie(context.cookie)
    return response


@router.post("/sign-in/{link}", operation_id="use_link", include_in_schema=False)
async def use_link(link: Annotated[str, Path(max_length=100)], request: Request, context: ContextOf) -> Response:
    """Use a one-time link up and start a browser session. Opening the link shows a page and does not use it up."""
    context.limit_sign_in(request)
    user = await asyncio.to_thread(context.sessions.redeem, link)
    response = RedirectResponse("/", status_code=303)
    await asyncio.to_thread(open_session, context, user, response, by_link=True)
    return response


@router.get("/api/v1/me", operation_id="read_me")
def read_me(request: Request, who: Who, context: ContextOf) -> dict[str, Any]:
    """The account, its roles, groups and scopes; for a browser session also its CSRF token."""
    session = None if who.token else context.browser(request)
    user = context.service.users.get(who.name)
    return {
        "name": who.name, "roles": sorted(who.roles), "groups": list(who.groups), "scopes": sorted(who.scopes),
        "csrf": None if session is None else session.csrf,
        "reset": {"at": user.reset_at, "by": user.reset_by} if user.reset_at else None,
    }  # fmt: skip


@router.put("/api/v1/me/password", operation_id="set_password", status_code=204)
def set_password(body: Password, request: Request, who: Who, context: ContextOf) -> Response:
    """Set the account's password, in the browser and with the present one. All its browser sessions end."""
    require(who, Action.OWN_TOKENS)
    session = context.browser(request)
    if who.token or session is None:
        raise AccessDenied("A token does not set a password.", fix="Sign in with a browser, by a password or a link.")
    if context.passwords.exists(who.name) and not session.by_link:
        context.limit_sign_in(request)
        context.passwords.authenticate(who.name, body.current, address=context.address(request))
    context.passwords.set(who.name, body.password)
    return Response(status_code=204)


@router.get("/api/v1/me/tokens", operation_id="list_my_tokens")
def list_my_tokens(who: Who, context: ContextOf) -> dict[str, Any]:
    """The account's tokens, without their secrets."""
    require(who, Action.OWN_TOKENS)
    return {"tokens": [token.to_dict() for token in context.service.tokens.of(who.name)]}


@router.post("/api/v1/me/tokens", operation_id="create_my_token", status_code=201)
def create_my_token(body: TokenBody, who: Who, context: ContextOf) -> dict[str, Any]:
    """Make a token for the account. Its secret is shown once."""
    require(who, Action.OWN_TOKENS)
    if not set(body.scopes) <= who.scopes:
        raise AccessDenied("A token cannot have scopes that its maker's token lacks.")
    made = context.service.tokens.create(
        who.name, scopes=body.scopes, days=body.days, label=body.label, made_by=who.token
    )
    return {**made.token.to_dict(), "secret": made.secret}


@router.delete("/api/v1/me/tokens/{identifier}", operation_id="revoke_my_token")
def revoke_my_token(identifier: Annotated[str, Path(max_length=64)], who: Who, context: ContextOf) -> dict[str, Any]:
    """End a token of the account."""
    require(who, Action.OWN_TOKENS)
    if context.service.tokens.get(identifier).user != who.name:
        raise NoSuchItem("There is no such token.")
    return context.service.tokens.revoke(identifier).to_dict()
