"""Answers in the format that a client accepts: JSON, CSV or an Arrow stream."""

from __future__ import annotations

import io
from datetime import date, datetime
from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from sfumato.query.results.answer import Answer
from sfumato.server.service import Asked, AskedWorkload

ARROW = "application/vnd.apache.arrow.stream"
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The answer.", "content": {"application/json": {}, "text/csv": {}, ARROW: {}}}
}


def answer_body(asked: Asked | AskedWorkload) -> dict[str, object]:
    """The answer as JSON, with the type of each column that JSON does not have."""
    types = {"types": _types(asked.answer)} if isinstance(asked, Asked) else {}
    return {**asked.answer.to_dict(), **types, "question": asked.question}


def _types(answer: Answer) -> list[str]:
    kinds = []
    for place in range(len(answer.columns)):
        values = [row[place].value for row in answer.rows if row[place].value is not None]
        first = values[0] if values else None
        kinds.append("datetime" if isinstance(first, datetime) else "date" if isinstance(first, date) else "plain")
    return kinds


def answer_response(asked: Asked | AskedWorkload, request: Request) -> Response:
    """The response in the first format that the client accepts; JSON if it does not say."""
    headers = {"Sfumato-Question": asked.question, "Vary": "Accept"}
    accepted = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    for kind in accepted:
        if kind in ("application/json", "*/*", "application/*"):
            break
        if kind in ("text/csv", "text/*"):
            return Response(_frame(asked).write_csv(), media_type="text/csv; charset=utf-8", headers=headers)
        if kind == ARROW:
            return Response(_arrow(asked), media_type=ARROW, headers=headers)
    return JSONResponse(answer_body(asked), headers=headers)


def _frame(asked: Asked | AskedWorkload) -> pl.DataFrame:
    if isinstance(asked, Asked):
        return asked.answer.intervals
    return pl.DataFrame([(cell.value, cell.low, cell.high) for cell in asked.answer.values],
                        schema=["value", "low", "high"], orient="row")  # fmt: skip


def _arrow(asked: Asked | AskedWorkload) -> bytes:
    import pyarrow as pa

    table, sink = asked.answer.to_arrow() if isinstance(asked, Asked) else _frame(asked).to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue()
