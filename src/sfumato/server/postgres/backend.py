"""What one connection may ask of the query service. Every call checks the token, the grant and the data set anew.

All functions block and are run in threads. A token that was revoked, or a grant that was withdrawn, ends what a
connection can do with its next statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from sfumato.errors import SfumatoError
from sfumato.query.plan.catalog import Catalog
from sfumato.query.results.answer import Answer
from sfumato.query.results.explain import Explanation
from sfumato.query.results.public_schema import schema_answer
from sfumato.query.sql.statement import split_error_clause
from sfumato.server.budgets import AccountBalance, period_name
from sfumato.server.postgres.catalog import CatalogResult, catalog_schemas
from sfumato.server.postgres.catalog_process import CatalogProcesses
from sfumato.server.postgres.catalog_relations import declared_columns, user_relations
from sfumato.server.postgres.catalog_sql import CatalogQuery, Identity, rewrite
from sfumato.server.postgres.notices import last_answer_rows
from sfumato.server.postgres.question_columns import question_columns
from sfumato.server.postgres.settings import VERSION, Settings
from sfumato.server.postgres.sqlstates import SqlError
from sfumato.server.postgres.statement_kinds import CatalogStatement
from sfumato.server.postgres.type_mapping import PostgresType
from sfumato.server.roles import Principal
from sfumato.server.service import QueryService

_PRIVATE = "differential-privacy"
_MOST_QUESTIONS = 1_000
Columns = tuple[tuple[str, PostgresType], ...]


@dataclass(frozen=True, kw_only=True)
class Backend:
    """The service as seen by one connection."""

    service: QueryService
    engines: CatalogProcesses
    user: str
    token: str
    """Identifier of the token that the client signed in with."""
    dataset: str
    _known: dict[str, tuple[Catalog, Columns]] = field(default_factory=dict)
    """Columns of the question that was read last: a client asks for them before and after it is run."""

    def principal(self) -> Principal:
        """Who asks, if the token is still valid."""
        return self.service.tokens.authenticated(self.token)

    def catalog(self) -> Catalog:
        """The public schema, if it may be seen."""
        return self.service.schema(self.principal(), self.dataset)

    def columns(self, sql: str) -> Columns:
        """The columns of a question; nothing is run."""
        return self._columns(sql, *self.service.described(self.principal(), self.dataset))

    def _columns(self, sql: str, catalog: Catalog, policy: str) -> Columns:
        known = self._known.get(sql)
        if known is not None and known[0] is catalog:
            return known[1]
        columns = question_columns(sql, catalog, policy=policy)
        self._known.clear()
        self._known[sql] = catalog, columns
        return columns

    def explain(self, sql: str, settings: Settings) -> Explanation:
        """Cost and error of a question."""
        principal = self.principal()
        policy = self.service.described(principal, self.dataset)[1]
        return self.service.explain(principal, self.dataset, sql, **_options(sql, settings, policy))

    def ask(
        self, sql: str, settings: Settings, *, most: Fraction | None, begun: Callable[[str], bool]
    ) -> tuple[Answer, Columns]:
        """Ask a question. ``begun`` is told its identifier and says whether to go on."""
        principal = self.principal()
        catalog, policy = self.service.described(principal, self.dataset)
        columns = self._columns(sql, catalog, policy)
        options = _options(sql, settings, policy)
        question = self.service.begin(principal, self.dataset, sql, **options)
        if not begun(question.id):
            self.service.cancel(principal, question.id)  # so that it is not run, which is noted
        return self.service.run(principal, question, max_epsilon=most).answer, columns

    def cancel(self, question: str) -> None:
        """Cancel a question that runs."""
        try:
            self.service.cancel(self.principal(), question)
        except SfumatoError:
            return  # it has ended, or the token has: there is nobody to tell

    def schema_answer(self, sql: str) -> Answer:
        """``SHOW TABLES`` and ``DESCRIBE table``."""
        answer = schema_answer(sql, self.catalog(), policy="")
        if answer is None:
            raise SqlError("42601", "this statement is not understood", "SHOW TABLES or DESCRIBE table.")
        return answer

    def catalog_columns(self, statement: CatalogStatement, values: Sequence[object], settings: Settings) -> Columns:
        """The columns of a query on public things."""
        catalog = self.catalog()
        described = self.engines.columns(catalog, self._rewritten(statement, catalog, values, settings))
        return tuple(zip(described.names, described.types, strict=True))

    def catalog_answer(
        self, statement: CatalogStatement, values: Sequence[object], settings: Settings, last: Answer | None
    ) -> CatalogResult:
        """The rows of a query on public things. ``last`` is the last answer of the connection."""
        principal = self.principal()
        catalog = self.service.schema(principal, self.dataset)

        def rows(name: str) -> Iterable[Mapping[str, Any]]:
            match name:
                case "sfumato_budget":
                    return [_budget_row(one) for one in self.service.budget(principal)]
                case "sfumato_questions":
                    return self._question_rows(principal)
                case "sfumato_last_answer":
                    return [] if last is None else last_answer_rows(last)
                case "sfumato_last_certificate":
                    own = None if last is None else last.certificate
                    return [] if own is None else [{"certificate": json.dumps(own)}]
                case "sfumato_columns":
                    return declared_columns(catalog)
            names = tuple(sorted(one.name for one in self.service.datasets(principal)))
            return user_relations(user=self.user, datasets=names, settings=settings.all())[name]

        return self.engines.answer(catalog, self._rewritten(statement, catalog, values, settings), rows)

    def _rewritten(
        self, statement: CatalogStatement, catalog: Catalog, values: Sequence[object], settings: Settings
    ) -> CatalogQuery:
        tables = catalog_schemas(catalog, columns_only=statement.columns_only)
        return rewrite(statement.tree.copy(), tables=tables, identity=self._identity(settings), parameters=values)

    def _question_rows(self, principal: Principal) -> list[dict[str, object]]:
        return [
            {"asked_at": one.at[:23].replace("T", " "), "question": one.sql, "status": one.state,
             "epsilon": one.options.get("epsilon"),
             "charged": None if one.entries is None else bool(one.entries)}
            for one in self.service.questions(principal, most=_MOST_QUESTIONS)
            if one.dataset == self.dataset
        ]  # fmt: skip

    def _identity(self, settings: Settings) -> Identity:
        from sfumato import __version__

        return Identity(
            user=self.user, database=self.dataset, version=f"PostgreSQL {VERSION} (sfumato {__version__})",
            settings=settings.all(),
        )  # fmt: skip


def _options(sql: str, settings: Settings, policy: str) -> dict[str, str]:
    """The cost of a question: the settings, or its own ERROR clause."""
    if policy != _PRIVATE:
        return {}
    target = split_error_clause(sql)[1]
    epsilon, delta = settings.number("epsilon"), settings.number("delta")
    given = {} if delta is None else {"delta": str(delta)}
    if target is not None and not target.relative:
        return given
    if epsilon is None:
        raise SqlError(
            "22023", "a question needs its cost: sfumato.epsilon is not set",
            "SET sfumato.epsilon = 0.1, or end the question with ERROR 50. EXPLAIN shows cost and error for free.",
        )  # fmt: skip
    return {"epsilon": str(epsilon), **given}


def _budget_row(balance: AccountBalance) -> dict[str, object]:
    return {
        "dataset": balance.dataset or "all data sets", "period": period_name(balance.period),
        "cap": None if balance.cap is None else str(balance.cap), "spent": str(balance.spent),
        "remaining": None if balance.left is None else str(balance.left),
        "since_beginning": str(balance.since_beginning),
    }  # fmt: skip
