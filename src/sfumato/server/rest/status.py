"""Health, readiness and metrics."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from sfumato.errors import SfumatoError
from sfumato.server.rest.context import ContextOf, PersonRoute, Who
from sfumato.server.rest.errors import ERRORS
from sfumato.server.roles import Action, require

router = APIRouter(tags=["status"], route_class=PersonRoute)


@router.get("/healthz", operation_id="health")
def health() -> dict[str, str]:
    """The process runs."""
    return {"status": "ok"}


@router.get("/readyz", operation_id="ready", responses={503: {"description": "The ledger cannot be used."}})
def ready(context: ContextOf) -> Response:
    """The state can be read, its disk takes more, and the witness is current: questions can be answered."""
    try:
        context.service.check_ready()
    except SfumatoError as refusal:
        return JSONResponse({"status": "not ready", "code": refusal.code, "message": refusal.message}, status_code=503)
    return JSONResponse({"status": "ok"})


@router.get(
    "/metrics",
    operation_id="metrics",
    responses={**ERRORS, 200: {"description": "Prometheus text.", "content": {"text/plain": {}}}},
)
def metrics(who: Who, context: ContextOf) -> Response:
    """Prometheus metrics: requests by operation and entries of the ledger. No time and no outcome of a question."""
    require(who, Action.READ_METRICS)
    return Response(context.workers.metrics.text(context.service), media_type="text/plain; version=0.0.4")
