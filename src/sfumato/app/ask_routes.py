"""Routes of questions. What answers them is loaded by the first request: it would slow the start of the app down."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from sfumato.app.documents import AskRequest, AskSetup, AskState, TextEdit
from sfumato.app.workspace import AppWorkspace

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; sandbox"


def ask_routes(workspace: AppWorkspace) -> APIRouter:
    """The routes under ``/api/ask``."""
    router = APIRouter(prefix="/api/ask", tags=["ask"])

    @router.get("")
    def state() -> AskState:
        from sfumato.app.asking import ask_state

        return ask_state(workspace)

    @router.post("/setup")
    def setup(request: AskSetup) -> AskState:
        """Write the metadata of the table and set its budget."""
        from sfumato.app.asking import ask_state, set_up

        set_up(workspace, request)
        return ask_state(workspace)

    @router.put("/metadata")
    def metadata(edit: TextEdit) -> AskState:
        from sfumato.app.asking import ask_state, change_metadata

        change_metadata(workspace, edit)
        return ask_state(workspace)

    @router.post("/explain")
    def explain(question: AskRequest) -> dict[str, Any]:
        """Cost and expected error; spends nothing."""
        from sfumato.app.asking import explain

        return explain(workspace, question)

    @router.post("/answer")
    def answer(question: AskRequest) -> dict[str, Any]:
        """Answer a question and charge the budget."""
        from sfumato.app.asking import answer

        return answer(workspace, question)

    @router.get("/told")
    def told() -> dict[str, Any]:
        """What the answers of the auditor give away together, for the owner."""
        from sfumato.app.asking import told

        return told(workspace)

    @router.get("/told/page")
    def told_page() -> Response:
        """The same with pictures, as a page without scripts."""
        from sfumato.app.asking import told_page

        headers = {"content-security-policy": _POLICY, "x-frame-options": "SAMEORIGIN"}
        return Response(told_page(workspace), media_type="text/html", headers=headers)

    return router
