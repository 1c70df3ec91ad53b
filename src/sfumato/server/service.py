"""The query service: the one place that authorizes, charges, runs and logs a question.

REST, the PostgreSQL endpoint and the command line call it with a :class:`~sfumato.server.roles.Principal` that was
authenticated, and hold no rights of their own. What a principal may not do is denied; a data set without a grant does
not exist for them.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from sfumato.engines.cancellation import Cancellation, cancellable
from sfumato.engines.engine import failed
from sfumato.errors import (
    AnswerFailed,
    BadParameter,
    Cancelled,
    LedgerBroken,
    NoSuchItem,
    QueryRefused,
    SfumatoError,
    WriteFailed,
)
from sfumato.query.plan.catalog import Catalog
from sfumato.query.results.answer import Answer
from sfumato.query.results.explain import Explanation
from sfumato.query.session import QueryOptions, Session
from sfumato.query.workload import WorkloadAnswer
from sfumato.rationals import Number
from sfumato.server.analyst_ledger import AnalystLedger
from sfumato.server.budgets import AccountBalance, Budgets
from sfumato.server.datasets import Datasets, DatasetState, RegisteredDataset
from sfumato.server.question_log import Question, QuestionLog
from sfumato.server.roles import AccountRole, Action, Principal, require
from sfumato.server.state import ServerState
from sfumato.server.tokens import Tokens
from sfumato.server.users import Users
from sfumato.server.witness import Witness

MOST_SQL = 100_000
"""Characters of one query, and of all queries of a workload."""
MOST_QUERIES = 200
"""Queries of one workload: the memory to plan it grows with their square."""
_MOST_DEPTH = 200
"""Nested parentheses of one query; parsers recurse."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question with its answer."""

    question: str
    """Identifier in the log."""
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class AskedWorkload:
    """A workload with its answers."""

    question: str
    """Identifier in the log."""
    answer: WorkloadAnswer


AnswerT = TypeVar("AnswerT", Answer, WorkloadAnswer)


class QueryService:
    """Answers questions of authenticated principals about registered data sets."""

    def __init__(
        self, state: ServerState, *, response_interval: float | None = None, engine: str | None = None
    ) -> None:
        self.state = state
        self.users, self.tokens, self.budgets = Users(state), Tokens(state), Budgets(state)
        self.registered = Datasets(state, response_interval=response_interval, engine=engine)
        self.log = QuestionLog(state)
        self.witness: Witness | None = None
        """Set while a server runs. Questions are answered only while it is current."""
        self._one_at_a_time: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._running: dict[str, Cancellation] = {}
        """The questions that this process answers at the moment."""

    @classmethod
    def open(cls, where: str | Path, **options: Any) -> QueryService:
        """The service on the state in a folder or in a PostgreSQL database."""
        return cls(ServerState.open(where), **options)

    def check_ready(self) -> None:
        """Refuse if questions cannot be answered: the state, its disk or the witness fails."""
        self.state.check_writable()
        self._check_witness()

    def _check_witness(self) -> None:
        if self.witness is not None:
            self.witness.check()

    def datasets(self, principal: Principal) -> tuple[RegisteredDataset, ...]:
        """The data sets that exist for a principal."""
        require(principal, Action.SCHEMA)
        return self.registered.visible(principal)

    def schema(self, principal: Principal, dataset: str) -> Catalog:
        """The public schema: tables, columns and declared domains."""
        return self.described(principal, dataset)[0]

    def described(self, principal: Principal, dataset: str) -> tuple[Catalog, str]:
        """The public schema, and the policy that answers."""
        found = self.registered.for_schema(principal, dataset)
        return self.registered.session(found).catalog, found.policy

    def explain(self, principal: Principal, dataset: str, sql: str, **options: object) -> Explanation:
        """Cost and expected error of a question. Reads no data, costs nothing and is not logged."""
        session = self._readable(principal, dataset, sql)
        try:
            return session.explain(sql, **_options(options))
        except RecursionError:
            raise _too_deep() from None

    def analyze(self, principal: Principal, dataset: str, sql: str, **options: object) -> str:
        """The privacy analysis of a question. Reads no data, costs nothing and is not logged."""
        session = self._readable(principal, dataset, sql)
        try:
            return session.analyze(sql, **_options(options))
        except RecursionError:
            raise _too_deep() from None

    def _readable(self, principal: Principal, dataset: str, sql: str) -> Session:
        session = self.registered.session(self.registered.for_question(principal, dataset))
        _check_text(sql)
        return session

    def ask(
        self,
        principal: Principal,
        dataset: str,
        sql: str,
        *,
        max_epsilon: Number | None = None,
        idempotency_key: str | None = None,
        **options: object,
    ) -> Answer:
        """The answer to a question; ``options`` are those of :meth:`sfumato.query.session.Session.ask`.

        ``max_epsilon`` is the most that this question may cost. A retry with the same ``idempotency_key`` never pays
        twice. A question that the analyst asked before is free.
        """
        begun = self.begin(principal, dataset, sql, idempotency_key=idempotency_key, **options)
        return self.run(principal, begun, max_epsilon=max_epsilon).answer

    def begin(
        self, principal: Principal, dataset: str, sql: str, *, idempotency_key: str | None = None, **options: object
    ) -> Question:
        """Authorize and log a question without running it; :meth:`run` answers it."""
        return self._begin(principal, dataset, (sql,), sql, options, idempotency_key)

    def begin_workload(
        self,
        principal: Principal,
        dataset: str,
        queries: Sequence[str],
        *,
        idempotency_key: str | None = None,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
    ) -> Question:
        """Authorize and log a workload without running it; :meth:`run_workload` answers it."""
        given = {"workload": len(queries), "epsilon": epsilon, "delta": delta, "rho": rho, "rows": rows,
                 "groups": groups}  # fmt: skip
        text = json.dumps(list(queries), ensure_ascii=False)
        return self._begin(principal, dataset, queries, text, given, idempotency_key)

    def _begin(
        self,
        principal: Principal,
        dataset: str,
        queries: Sequence[str],
        text: str,
        options: Mapping[str, object],
        idempotency_key: str | None,
    ) -> Question:
        self.registered.for_question(principal, dataset)
        self._check_witness()
        _check_text(*queries)
        given = {name: str(value) for name, value in options.items() if value is not None}
        question, _ = self.log.begin(
            analyst=principal.name, dataset=dataset, sql=text, options=given, idempotency_key=idempotency_key
        )
        return question

    def run(self, principal: Principal, question: Question, *, max_epsilon: Number | None = None) -> Asked:
        """Answer a question that was begun. One that was answered before is read again; nothing is charged for it."""
        answer = self._run(
            principal, question, max_epsilon,
            lambda session: session.signed(session.ask(question.sql, **_options(question.options))),
        )  # fmt: skip
        return Asked(question=question.id, answer=answer)

    def run_workload(
        self, principal: Principal, question: Question, *, max_epsilon: Number | None = None
    ) -> AskedWorkload:
        """Answer a workload that was begun, as :meth:`run` answers a question."""

        def answered(session: Session) -> WorkloadAnswer:
            options = _options({name: value for name, value in question.options.items() if name != "workload"})
            return session.signed(session.workload(question.queries or (), **options))  # type: ignore[misc]

        return AskedWorkload(question=question.id, answer=self._run(principal, question, max_epsilon, answered))

    def _run(
        self,
        principal: Principal,
        question: Question,
        max_epsilon: Number | None,
        answered: Callable[[Session], AnswerT],
    ) -> AnswerT:
        if question.analyst != principal.name:
            raise NoSuchItem("There is no such question.")
        dataset = self.registered.for_question(principal, question.dataset)
        question = self.log.get(question.id)  # it may have been cancelled while it waited for its turn
        if question.state == "cancelled":
            if question.entries is None:
                self.drop(question.id)
            raise _cancelled()
        if question.state == "failed":
            error = question.error or {}
            raise AnswerFailed(str(error.get("message", "")), fix=str(error.get("fix", "")))
        stored = question.state == "done" or dataset.state is DatasetState.FROZEN
        if not stored:
            self._check_witness()
        ledger = AnalystLedger(
            self.state.ledger, principal, dataset=dataset.name, max_epsilon=max_epsilon, only_stored=stored
        )
        cancellation = self._running[question.id] = Cancellation()
        try:
            with cancellable(cancellation):
                answer = self._answered(dataset, ledger, question, answered)
        except SfumatoError as refusal:
            if cancellation.cancelled and isinstance(refusal, AnswerFailed):
                with suppress(WriteFailed):
                    self.log.finish(question.id, "running", entries=ledger.charged)
                raise _cancelled() from None
            self._note(question, refusal, ledger)
            raise
        finally:
            self._running.pop(question.id, None)
        if question.state != "done":
            with suppress(WriteFailed):  # the answer is paid and stored; only the log is behind
                if not self.log.finish(question.id, "done", entries=ledger.charged):
                    raise _cancelled()
        return answer

    def result(self, principal: Principal, identifier: str) -> Asked | AskedWorkload:
        """The answer to an earlier question or workload of the principal."""
        question = self.question(principal, identifier)
        if question.state not in ("done", "failed", "cancelled"):
            raise BadParameter(f"the question is {question.state}; it has no answer.", fix="Ask for its status.")
        return self.run(principal, question) if question.queries is None else self.run_workload(principal, question)

    def question(self, principal: Principal, identifier: str) -> Question:
        """A question of the principal; for auditors of anybody, for owners about their data sets."""
        question = self.log.get(identifier)
        if question.analyst == principal.name:
            return question
        if principal.may(Action.READ_QUESTIONS) and (
            AccountRole.AUDITOR in principal.roles or self.registered.get(question.dataset).owner == principal.name
        ):
            return question
        raise NoSuchItem("There is no such question.")

    def questions(self, principal: Principal, *, most: int = 100) -> tuple[Question, ...]:
        """The newest questions of the principal."""
        require(principal, Action.ASK)
        return self.log.latest(analyst=principal.name, most=most)

    def cancel(self, principal: Principal, identifier: str) -> Question:
        """Cancel a question of the principal. What was charged stays charged; no answer is returned."""
        require(principal, Action.ASK)
        question = self.log.get(identifier)
        if question.analyst != principal.name:
            raise NoSuchItem("There is no such question.")
        self.log.cancel(identifier)
        self.interrupt(identifier)
        return self.log.get(identifier)

    def interrupt(self, identifier: str) -> None:
        """End what an engine runs for a question. One that is not cancelled can be run again, at no further cost."""
        running = self._running.get(identifier)
        if running is not None:
            running.cancel()

    def runs(self, identifier: str) -> bool:
        """Whether this process answers a question at the moment."""
        return identifier in self._running

    def drop(self, identifier: str) -> None:
        """Note that a question will not be run: it was cancelled before its turn, at no cost."""
        self.log.cancel(identifier)
        self.log.finish(identifier, "cancelled")

    def interrupt_all(self) -> None:
        """End what engines run for any question; the server stops."""
        for identifier in list(self._running):
            self.interrupt(identifier)

    def budget(self, principal: Principal) -> tuple[AccountBalance, ...]:
        """The principal's own budgets, over all data sets and on each; shared budgets are not told."""
        require(principal, Action.OWN_BUDGET)
        found = list(self.budgets.balances(holder=principal.name))
        for dataset in self.registered.granted(principal):
            found += self.budgets.balances(dataset=dataset.name, holder=principal.name)
        return tuple(balance for balance in found if balance.cap is not None or balance.spent.size)

    def _answered(
        self,
        dataset: RegisteredDataset,
        ledger: AnalystLedger,
        question: Question,
        answered: Callable[[Session], AnswerT],
    ) -> AnswerT:
        session = self.registered.session(dataset).for_analyst(question.analyst, ledger)
        lock = nullcontext() if session.policy is None else self._one_at_a_time[dataset.name]
        try:
            with lock:
                return answered(session)
        except RecursionError:
            raise _too_deep() from None
        except LedgerBroken:
            self.registered.close(dataset)  # an interrupted auditor goes on from what is on disk
            raise
        except SfumatoError:
            raise
        except Exception:
            if ledger.charged:
                raise failed() from None  # in the same words as the engine: the reason may depend on the data
            raise AnswerFailed(
                "The question could not be computed. Nothing was charged.", fix="Ask the data's owner."
            ) from None

    def _note(self, question: Question, refusal: SfumatoError, ledger: AnalystLedger) -> None:
        if question.state == "done":
            return
        failed = isinstance(refusal, AnswerFailed)
        with suppress(WriteFailed):
            if failed and ledger.charged:
                self.state.ledger.note_failure(ledger.charged[-1])
            if not isinstance(refusal, WriteFailed):
                error = refusal.to_dict()["error"]
                assert isinstance(error, Mapping)
                self.log.finish(question.id, "failed" if failed else "refused", error=error, entries=ledger.charged)


def _options(options: Mapping[str, Any]) -> QueryOptions:
    """Options as a session takes them; unknown ones are refused."""
    given = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(given.keys() - QueryOptions.__annotations__.keys())
    if unknown:
        raise BadParameter(f"there is no option `{unknown[0]}`.")
    for name in ("rows", "groups"):
        if name in given:
            given[name] = int(given[name])
    return cast(QueryOptions, given)


def _check_text(*queries: str) -> None:
    """Refuse texts that are too many, too long or nested too deeply, before a parser reads them."""
    if len(queries) > MOST_QUERIES:
        raise QueryRefused(f"The workload has more than {MOST_QUERIES} queries.", fix="Ask several workloads.")
    if sum(map(len, queries)) > MOST_SQL:
        raise QueryRefused(f"The query has more than {MOST_SQL:,} characters.", fix="Ask a shorter query.")
    for sql in queries:
        depth = deepest = 0
        for character in sql:
            depth += (character in "([") - (character in ")]")
            deepest = max(deepest, depth)
        if deepest > _MOST_DEPTH:
            raise _too_deep()


def _too_deep() -> QueryRefused:
    return QueryRefused("The query is nested too deeply.", fix=f"Nest at most {_MOST_DEPTH} parentheses.")


def _cancelled() -> Cancelled:
    return Cancelled("The question was cancelled. What was charged before stays charged.")
