"""Health, readiness, metrics and the start page."""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from sfumato import __version__
from sfumato.errors import SfumatoError
from sfumato.server.heads import refuse_rolled_back
from sfumato.server.rest.context import ContextOf, ServerContext, Who
from sfumato.server.rest.errors import ERRORS
from sfumato.server.roles import Action, Principal, require

__all__ = ["router"]

router = APIRouter(tags=["status"])


@router.get("/healthz", operation_id="health")
def health() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/readyz", operation_id="ready", responses={503: {"description": "The ledger cannot be used."}})
def ready(context: ContextOf) -> Response:
    """The ledger can be written and was not rolled back: questions can be answered."""
    try:
        with context.service.state.store.write():
            pass
        refuse_rolled_back(context.service.state)
    except SfumatoError as refusal:
        return JSONResponse({"status": "not ready", "code": refusal.code}, status_code=503)
    return JSONResponse({"status": "ok"})


@router.get(
    "/metrics",
    operation_id="metrics",
    responses={**ERRORS, 200: {"description": "Prometheus text.", "content": {"text/plain": {}}}},
)
def metrics(who: Who, context: ContextOf) -> Response:
    """Prometheus metrics: requests by operation and entries of the ledger. No time and no outcome of a question."""
    require(who, Action.READ_METRICS)
    return Response(context.metrics_text(), media_type="text/plain; version=0.0.4")


@router.get("/", operation_id="start_page", include_in_schema=False)
def start_page(request: Request, context: ContextOf) -> HTMLResponse:
    """The account, its data sets and its budgets."""
    session = context.browser(request)
    if session is None:
        return _page("<p>Sign in with the link that an administrator gave you.</p>", status=401)
    who = session.user.principal()
    return _page(_overview(context, who))


def _overview(context: ServerContext, who: Principal) -> str:
    parts = [f"<p>Signed in as <b>{escape(who.name)}</b>: {escape(', '.join(sorted(who.roles)))}.</p>"]
    if who.may(Action.SCHEMA):
        datasets = context.service.datasets(who)
        parts.append(_table("Data sets", ("name", "state", "policy"), [(d.name, d.state, d.policy) for d in datasets]))
    balances: tuple[Any, ...] = context.service.budget(who) if who.may(Action.OWN_BUDGET) else ()
    rows = [
        (b.dataset or "all", b.period.name.lower(), b.cap or "none", b.left or "", b.since_beginning) for b in balances
    ]
    if rows:
        parts.append(_table("Budgets", ("data set", "period", "cap", "left", "loss since the beginning"), rows))
    parts.append('<p>The interface is described in <a href="/api/v1/openapi.json">openapi.json</a>.</p>')
    return "".join(parts)


def _table(title: str, head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    heads = "".join(f"<th scope=col>{escape(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<h2>{escape(title)}</h2><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _page(content: str, *, status: int = 200) -> HTMLResponse:
    return HTMLResponse(
        f"<!doctype html><html lang=en><meta charset=utf-8><title>sfumato {__version__}</title>"
        f"<h1>sfumato</h1>{content}",
        status_code=status,
    )
