"""Errors over HTTP: one JSON shape, the same as on the command line."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from sfumato import errors
from sfumato.errors import SfumatoError
from sfumato.server.error_codes import error_codes

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    for status, text in {
        400: "The request cannot be read.",
        401: "No valid credential.",
        403: "Not allowed, or beyond the budget.",
        404: "It does not exist, or the account may not know of it.",
        409: "It contradicts an earlier request.",
        413: "The request is too large.",
        415: "The body is not JSON.",
        422: "The request, the query or an option is refused. Nothing was charged.",
        429: "Too many requests.",
        500: "The question failed. A cost that was charged stays charged.",
        503: "The ledger cannot be written or trusted. Nothing is answered.",
    }.items()
}
"""Responses that every operation may give, for the OpenAPI document."""


def _shape(code: str, message: str, fix: str = "") -> dict[str, object]:
    return {"error": {"code": code, "message": message, "fix": fix}}


def add_error_handlers(app: FastAPI) -> None:
    """Turn every error into the JSON shape; a fault of the server shows nothing of itself."""

    async def refused(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, SfumatoError)
        headers = {"WWW-Authenticate": "Bearer"} if isinstance(error, errors.NotSignedIn) else None
        return JSONResponse(error.to_dict(), status_code=error_codes(error)[0], headers=headers)

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        # Locations and rules only: the input may hold a password or a literal.
        places = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:5])
        return JSONResponse(_shape("SFU-002", f"The request is not valid: {places}"), status_code=422)

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        return JSONResponse(_shape("SFU-002", str(error.detail)), status_code=error.status_code, headers=error.headers)

    async def internal(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse(_shape("SFU-003", f"Internal error ({type(error).__name__})."), status_code=500)

    app.add_exception_handler(SfumatoError, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, internal)
