"""Operations of analysts: data sets, schemas, explain, ask, status, result, cancel, budget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from sfumato.query.catalog_document import catalog_to_dict
from sfumato.query.plan.catalog import Catalog
from sfumato.query.results.public_schema import describe_table, list_tables
from sfumato.server.question_log import Question
from sfumato.server.rest.context import ContextOf, PersonRoute, ServerContext, Who
from sfumato.server.rest.errors import ERRORS
from sfumato.server.rest.models import QuestionBody, RequestedCap, WorkloadBody
from sfumato.server.rest.results import RESPONSES, answer_response
from sfumato.server.roles import Action, Principal, require
from sfumato.server.service import Asked, AskedWorkload

router = APIRouter(prefix="/api/v1", tags=["questions"], responses=ERRORS, route_class=PersonRoute)
Name = Annotated[str, Path(max_length=63)]
Identifier = Annotated[str, Path(max_length=64)]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Prefer = Annotated[str | None, Header(max_length=200)]
_POLL_SECONDS = 0.2
_LONGEST_STREAM = 3600


@router.get("/datasets", operation_id="list_datasets")
def list_datasets(who: Who, context: ContextOf) -> dict[str, Any]:
    """The data sets that exist for the account."""
    return {"datasets": [_shown(dataset.to_dict(), who) for dataset in context.service.datasets(who)]}


def _shown(dataset: dict[str, object], who: Principal) -> dict[str, object]:
    public = ("name", "state", "version", "policy")
    return dataset if who.may(Action.READ_DATASETS) else {name: dataset[name] for name in public}


@router.get("/datasets/{name}/schema", operation_id="read_schema")
def read_schema(name: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """Tables, columns and declared domains. They are public to those who may ask."""
    catalog = context.service.schema(who, name)
    return {"dataset": catalog.dataset, "tables": [_table(catalog, *row) for row in list_tables(catalog)[1]]}


def _table(catalog: Catalog, name: str, access: str, unit: str) -> dict[str, Any]:
    titles, rows = describe_table(catalog, name)
    columns = [dict(zip(titles, row, strict=True)) for row in rows]
    return {"name": name, "access": access, "unit": unit, "columns": columns}


@router.get("/datasets/{name}/catalog", operation_id="read_catalog")
def read_catalog(name: Name, who: Who, context: ContextOf) -> dict[str, Any]:
    """The declared schema for programs: tables, units, kinds, domains; public tables as Arrow streams in base64."""
    require(who, Action.SCHEMA)
    return catalog_to_dict(context.service.schema(who, name))


@router.post("/datasets/{name}/explain", operation_id="explain")
def explain(name: Name, body: QuestionBody, who: Who, context: ContextOf) -> dict[str, Any]:
    """Cost and expected error of a question. It is free and reads no data."""
    require(who, Action.ASK)
    explanation = context.service.explain(who, name, body.sql, **body.options())
    return {"explanation": explanation.to_dict(), "text": str(explanation)}


@router.post("/datasets/{name}/analyze", operation_id="analyze")
def analyze(name: Name, body: QuestionBody, who: Who, context: ContextOf) -> dict[str, Any]:
    """Privacy analysis of a question, for reviewers: rows, sensitivities, noise, loss. It is free and reads no data."""
    require(who, Action.ASK)
    return {"analysis": context.service.analyze(who, name, body.sql, **body.options())}


@router.post("/datasets/{name}/ask", operation_id="ask", responses={**ERRORS, **RESPONSES})
async def ask(
    name: Name, body: QuestionBody, who: Who, context: ContextOf, request: Request, key: Key = None,
    prefer: Prefer = None,
) -> Response:  # fmt: skip
    """Ask a question. The answer is JSON, CSV or Arrow, as ``Accept`` says.

    A request that is sent again with the same ``Idempotency-Key`` never pays twice. With ``Prefer: respond-async`` the
    response has status 202 and the identifier of the question; its status, events and result are read from there.
    """
    require(who, Action.ASK)
    begin = partial(context.service.begin, who, name, body.sql, idempotency_key=key, **body.options())
    run = partial(context.service.run, who, max_epsilon=body.max_epsilon)
    return await _respond(context, request, prefer, begin, run, who=who, keyed=key is not None)


@router.post("/datasets/{name}/workload", operation_id="ask_workload", responses={**ERRORS, **RESPONSES})
async def ask_workload(
    name: Name, body: WorkloadBody, who: Who, context: ContextOf, request: Request, key: Key = None,
    prefer: Prefer = None,
) -> Response:  # fmt: skip
    """Ask many counting queries for one cost, by the matrix mechanism. Headers and formats are those of ``ask``."""
    require(who, Action.ASK)
    begin = partial(context.service.begin_workload, who, name, body.queries, idempotency_key=key, **body.options())
    run = partial(context.service.run_workload, who, max_epsilon=body.max_epsilon)
    return await _respond(context, request, prefer, begin, run, who=who, keyed=key is not None)


async def _respond(
    context: ServerContext,
    request: Request,
    prefer: str | None,
    begin: Callable[[], Question],
    run: Callable[[Question], Asked] | Callable[[Question], AskedWorkload],
    *,
    who: Principal,
    keyed: bool,
) -> Response:
    later = prefer is not None and "respond-async" in prefer.lower()
    if later:
        context.check_waiting(who.name)
    question = await context.workers.run(who.name, begin)
    answering = partial(run, question)
    if later:
        context.submit(who.name, question.id, answering)
        place = f"/api/v1/questions/{question.id}"
        return JSONResponse({"question": question.id, "state": question.state}, 202, {"Location": place})
    running: asyncio.Future[Asked | AskedWorkload] = asyncio.ensure_future(context.workers.go_on(who.name, answering))
    while not (await asyncio.wait((running,), timeout=_POLL_SECONDS))[0]:
        if await request.is_disconnected():
            # The client has gone. With a key it may come again and is answered then; what is charged stays charged.
            end = context.service.interrupt if keyed else partial(context.service.cancel, who)
            await asyncio.to_thread(end, question.id)
            break
    asked = await running
    return answer_response(asked, request)


@router.get("/questions", operation_id="list_questions")
def list_questions(who: Who, context: ContextOf, most: Annotated[int, Query(ge=1, le=1000)] = 100) -> dict[str, Any]:
    """The newest questions of the account."""
    return {"questions": [question.to_dict() for question in context.service.questions(who, most=most)]}


@router.get("/questions/{identifier}", operation_id="read_question")
def read_question(identifier: Identifier, who: Who, context: ContextOf) -> dict[str, Any]:
    """Status of a question: running, done, refused, failed or cancelled."""
    question = context.service.question(who, identifier)
    return question.audited() if who.may(Action.READ_QUESTIONS) and question.analyst != who.name else question.to_dict()


@router.get("/questions/{identifier}/result", operation_id="read_result", responses={**ERRORS, **RESPONSES})
def read_result(identifier: Identifier, who: Who, context: ContextOf, request: Request) -> Response:
    """The answer to an earlier question, again. It is free."""
    require(who, Action.ASK)
    return answer_response(context.service.result(who, identifier), request)


@router.post("/questions/{identifier}/cancel", operation_id="cancel")
async def cancel(identifier: Identifier, who: Who, context: ContextOf) -> dict[str, Any]:
    """Cancel a question. What was charged stays charged."""
    cancelled = await asyncio.to_thread(context.service.cancel, who, identifier)  # it waits for no turn
    return cancelled.to_dict()


@router.get(
    "/questions/{identifier}/events",
    operation_id="read_events",
    response_class=StreamingResponse,
    responses={**ERRORS, 200: {"description": "Events `state`.", "content": {"text/event-stream": {}}}},
)
async def read_events(identifier: Identifier, who: Who, context: ContextOf) -> StreamingResponse:
    """Server-Sent Events: one event for each change of state, until the question has ended.

    There is no share of work done: it could depend on the data.
    """
    await asyncio.to_thread(context.service.question, who, identifier)
    context.check_streams(who.name)
    return StreamingResponse(_events(context, who, identifier), media_type="text/event-stream")


async def _events(context: ServerContext, who: Principal, identifier: str) -> AsyncIterator[str]:
    told = ""
    with context.stream(who.name):
        for turn in range(int(_LONGEST_STREAM / _POLL_SECONDS)):
            question = await asyncio.to_thread(context.service.question, who, identifier)
            if question.state != told:
                told = question.state
                facts = {"question": identifier, "state": told, "error": question.error}
                yield f"event: state\ndata: {json.dumps(facts)}\n\n"
            elif turn % 50 == 0:
                yield ": waiting\n\n"
            if told != "running" or context.stopping:
                return
            await asyncio.sleep(_POLL_SECONDS)


@router.get("/budget", operation_id="read_budget")
def read_budget(who: Who, context: ContextOf) -> dict[str, Any]:
    """The account's own budgets, with the loss accumulated since the beginning."""
    return {"budgets": [balance.to_dict() for balance in context.service.budget(who)]}


@router.post("/budget/requests", operation_id="request_budget", status_code=201)
def request_budget(body: RequestedCap, who: Who, context: ContextOf) -> dict[str, Any]:
    """Ask for a budget. Two other people must approve it."""
    require(who, Action.REQUEST_BUDGET)
    if body.dataset:
        context.service.registered.for_question(who, body.dataset)
    request = context.service.budgets.request(
        body.loss(), dataset=body.dataset, holder=who.name, by=who.name, why=body.why, period=body.kind()
    )
    return request.to_dict()
