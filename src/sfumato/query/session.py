"""Asking: one analyst, one data set, one ledger.

The order of an answer is fixed: read the query, plan the noise, compute the loss twice, look for the same question's
answer, reserve the cost, run, add noise, keep the answer, give it. A refusal comes before the reservation and depends
on the query and the public catalog only; whatever goes wrong after it has one message and keeps its cost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cmp_to_key
from pathlib import Path
from typing import Any
from uuid import uuid4

import polars as pl

from sfumato.dp.ledger import Ledger
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure, sequential
from sfumato.engines.choice import choose_engine, is_address, without_password
from sfumato.engines.engine import Engine
from sfumato.errors import AnswerFailed, BadParameter, MetadataMissing, SfumatoError
from sfumato.query.builder import Builder
from sfumato.query.catalog import Catalog
from sfumato.query.execute.executor import NoisyTable, check_plan, execute_plan
from sfumato.query.execute.timing import quantize_response
from sfumato.query.plan.accuracy import doubling_plans, error_reached, plan_for_error
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.planner import plan_query
from sfumato.query.results.explain import Explanation, explain
from sfumato.query.results.intervals import OutputEvaluator
from sfumato.query.results.postprocess import NoisyValue
from sfumato.query.results.workload import WorkloadAnswer, answer_workload, plan_workload
from sfumato.query.sql.bind import scan_table
from sfumato.query.sql.parse import Query, parse_query
from sfumato.rationals import Number, rational

__all__ = ["Answer", "Session"]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Noisy numbers with their intervals: all of it may be shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[NoisyValue, ...], ...]
    loss: PrivacyLoss
    """What this answer cost; when ``cached``, what it had cost the first time."""
    cached: bool
    remaining: PrivacyLoss | None
    """What is left of the smallest budget that counts for this analyst."""
    explanation: Explanation

    @property
    def frame(self) -> pl.DataFrame:
        """The values as a Polars frame."""
        data = {name: [row[i].value for row in self.rows] for i, name in enumerate(self.columns)}
        return pl.DataFrame(data, strict=False)  # whole numbers and others may stand in one column

    @property
    def intervals(self) -> pl.DataFrame:
        """Values with ``_low`` and ``_high`` beside each number that has an interval (95 %)."""
        data: dict[str, list[Any]] = {}
        for i, name in enumerate(self.columns):
            data[name] = [row[i].value for row in self.rows]
            if any(row[i].low is not None for row in self.rows):
                data[f"{name}_low"] = [row[i].low for row in self.rows]
                data[f"{name}_high"] = [row[i].high for row in self.rows]
        return pl.DataFrame(data, strict=False)

    def __repr__(self) -> str:
        left = "" if self.remaining is None else f" Left: {self.remaining}."
        return f"{self.intervals}\n{'Answered before, so it is free' if self.cached else f'Cost {self.loss}'}.{left}"

    def to_arrow(self) -> Any:
        """The values with their intervals as an Arrow table."""
        return self.intervals.to_arrow()

    def to_pandas(self) -> Any:
        """The values with their intervals as a pandas frame."""
        return self.intervals.to_pandas()

    @property
    def value(self) -> Any:
        """The number, for an answer that is a single one."""
        if len(self.rows) != 1 or len(self.columns) != 1:
            raise BadParameter("this answer has more than one number.", fix="Use `answer.frame`.")
        return self.rows[0][0].value

    def to_dict(self) -> dict[str, Any]:
        rows = [
            {name: {"value": _plain(cell.value), "low": cell.low, "high": cell.high}
             for name, cell in zip(self.columns, row, strict=True)}
            for row in self.rows
        ]  # fmt: skip
        return {
            "columns": list(self.columns), "rows": rows, "loss": self.loss.to_dict(), "cached": self.cached,
            "remaining": None if self.remaining is None else self.remaining.to_dict(),
            "explanation": self.explanation.to_dict(),
        }  # fmt: skip


class Session:
    """Answers one analyst's questions about one data set.

    >>> from sfumato.demos.private_hospital import flu
    >>> session = flu(people=200, budget=10)
    >>> answer = session.ask("SELECT COUNT(*) FROM patients", epsilon=1)
    >>> answer.cached, session.ask("select count(*) from patients", epsilon=1).cached
    (False, True)
    """

    def __init__(
        self,
        catalog: Catalog,
        tables: Mapping[str, Any],
        *,
        ledger: Ledger,
        analyst: str,
        engine: Engine | str | None = None,
        pace: float | None = None,
        version: str = "",
    ) -> None:
        missing = [name for name in catalog.private if name not in tables]
        if missing:
            raise BadParameter(f"no data was given for table `{missing[0]}`.")
        self.catalog = catalog
        self.ledger = ledger
        self.analyst = analyst
        self.pace = pace
        """Answers are given at whole multiples of so many seconds after the question; hides how long a run took."""
        self.version = version
        """The owner's name for the present state of tables in a database; a new one makes repeated questions new."""
        sources = {name: tables[name] for name in catalog.private}
        self._sources, self._born = sources, uuid4().hex
        public = {name: table.frame for name, table in catalog.public.items()}
        self._public = hashlib.sha256("\n".join(frame.write_csv() for frame in public.values()).encode()).hexdigest()
        opened = {name: _arrow(source) for name, source in (sources | public).items()}
        self._engine = choose_engine(engine, sources.values()).start(opened)
        self._check_columns()

    def _check_columns(self) -> None:
        """Declared columns that the data lack would make every question fail, at its full cost."""
        for table in self.catalog.private.values():
            try:
                self._engine.run(f"SELECT COUNT(*) FROM ({scan_table(self.catalog, table).sql()}) WHERE FALSE")
            except AnswerFailed:
                raise MetadataMissing(
                    f"Not all declared columns of `{table.name}` can be read from its data.",
                    fix="Compare the metadata with the data.",
                ) from None

    def explain(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
        bounding: str | None = None,
    ) -> Explanation:
        """Cost and expected error. Touches no data and costs nothing. For a relative error: the most it may cost."""
        limits = {"rows": rows, "groups": groups, "bounding": bounding}
        query = parse_query(sql, self.catalog)
        if query.target is not None and query.target.relative:
            query = replace(query, target=None)
        return explain(self._plan_noise(query, epsilon, delta, rho, limits))

    def ask(
        self,
        sql: str,
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
        bounding: str | None = None,
    ) -> Answer:
        """The private answer. The same question at the same cost gives the same answer again, for free.

        ``epsilon`` (with a ``delta`` where Gaussian noise or private keys are wanted) or ``rho`` is the cost. A query
        that ends in ``ERROR 50 CONFIDENCE 95%`` finds its own epsilon; one that ends in ``ERROR 5%`` is asked at
        doubling costs, up to ``epsilon`` in all, until the noisy answer shows that its error is small enough. ``rows``
        and ``groups`` override how much of one unit counts, ``bounding`` ("sample" or "clip") how that is enforced:
        they change accuracy and cost nothing.
        """
        limits = {"rows": rows, "groups": groups, "bounding": bounding}
        with quantize_response(self.pace):
            query = parse_query(sql, self.catalog)
            if query.target is not None and query.target.relative:
                if epsilon is None or rho is not None:
                    raise BadParameter("a relative error needs an epsilon that it may cost at most.")
                return self._approach(query, rational(epsilon), rational(delta), limits)
            return self._carry_out(self._plan_noise(query, epsilon, delta, rho, limits))

    def _carry_out(self, plan: NoisePlan) -> Answer:
        key = self._key(plan)
        kept = self.ledger.recall(key)
        if kept is not None:
            return self._answer(plan, _read(kept), cached=True)
        check_plan(plan, self._engine)
        receipt = self.ledger.reserve(plan.cost, dataset=self.catalog.dataset, analyst=self.analyst, query=key)
        try:
            released = execute_plan(plan, self._engine, receipt)
        except AnswerFailed:
            raise
        except Exception:
            # Nothing of the reason may reach the analyst: it could depend on the data.
            raise _failed() from None
        body = _write(released)
        kept = self.ledger.remember(key, body)
        # Somebody else may have asked at the same time and have kept their answer first.
        return self._answer(plan, released if kept == body else _read(kept), cached=False)

    def _approach(self, query: Query, ceiling: Fraction, delta: Fraction, limits: dict[str, Any]) -> Answer:
        """Ask at doubling costs until the noisy answer is exact enough; the loss told is that of all steps."""
        losses: list[PrivacyLoss] = []
        fresh = False
        answer: Answer | None = None
        for plan in doubling_plans(query, ceiling, delta, limits):
            answer = self._carry_out(plan)
            losses.append(plan.cost)
            fresh = fresh or not answer.cached
            if error_reached(query, plan, float(answer.value)):
                break
        else:
            assert answer is not None
            missed = (*answer.explanation.notes, "The wanted error was not reached for this epsilon.")
            answer = replace(answer, explanation=replace(answer.explanation, notes=missed))
        return replace(answer, loss=sequential(losses), cached=not fresh)

    def table(self, name: str) -> Builder:
        """Start a question without SQL: ``session.table("patients").by("ward").count().ask(epsilon=1)``."""
        return Builder(session=self, source=name)

    def workload(
        self,
        queries: Sequence[str],
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
    ) -> WorkloadAnswer:
        """Many counts for one cost, measured together in whatever way is most exact; the answer says which way."""
        if (epsilon is None) == (rho is None):
            raise BadParameter("a workload needs its cost.", fix="Pass epsilon or rho.")
        cost = concentrated(rho, delta) if rho is not None else approximate(epsilon or 0, delta)
        with quantize_response(self.pace):
            return answer_workload(self, plan_workload(self, queries, cost, rows=rows, groups=groups))

    def remaining(self) -> PrivacyLoss | None:
        """The smallest of what is left to the data set, to this analyst on it, and to this analyst."""
        accounts = ({"dataset": self.catalog.dataset}, {"dataset": self.catalog.dataset, "analyst": self.analyst},
                    {"analyst": self.analyst})  # fmt: skip
        left = [self.ledger.balance(**account).left for account in accounts]
        known = [loss for loss in left if loss is not None]
        return min(known, key=lambda loss: loss.size, default=None)

    def _plan_noise(
        self, query: Query, epsilon: Number | None, delta: Number, rho: Number | None, limits: dict[str, Any]
    ) -> NoisePlan:
        if rho is not None:
            if epsilon is not None or query.target is not None:
                raise BadParameter("give one of epsilon, rho and ERROR.")
            return plan_query(query, concentrated(rho, delta), **limits)
        if query.target is not None:
            if epsilon is not None:
                raise BadParameter("give epsilon or ERROR, not both.")
            return plan_for_error(query, rational(delta), limits)
        if epsilon is None:
            raise BadParameter("a question needs its cost.", fix="Pass epsilon, or end the query with ERROR 50.")
        cost = approximate(epsilon, delta) if delta else pure(epsilon)
        return plan_query(query, cost, **limits)

    def _version(self) -> str:
        """Changes when the data changes: a file by its size and time, a frame with every session, a database when the
        owner says so."""
        seen = [self._public]
        for source in self._sources.values():
            if is_address(source):
                seen.append(f"{without_password(source)} {self.version}")
            elif isinstance(source, str | Path):
                facts = Path(source).stat()
                seen.append(f"{Path(source).resolve()} {facts.st_size} {facts.st_mtime_ns}")
            else:
                seen.append(self._born)
        return "\n".join(seen)

    def _key(self, plan: NoisePlan) -> str:
        parts = [
            self.catalog.dataset, self.analyst, self._version(), plan.query.fingerprint(),
            repr(plan.cost), str(plan.rows), str(plan.groups), plan.bounding,
            # A later release may plan other noise: its intervals would be wrong for a number that was kept.
            repr([(measurement.aggregate, measurement.mechanism) for measurement in plan.measurements]),
        ]  # fmt: skip
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()

    def _answer(self, plan: NoisePlan, released: NoisyTable, *, cached: bool) -> Answer:
        query = plan.query
        shown = OutputEvaluator(plan, released)
        chosen = list(range(len(released.keys)))
        if query.having is not None:
            holds = shown.column(query.having)
            chosen = [place for place in chosen if holds[place].value]
        for output, descending in reversed(query.order):
            by = shown.column(output)
            sortable = [(by[place].value, place) for place in chosen]
            # Missing values come last whichever way is sorted.
            told = sorted((item for item in sortable if item[0] is not None), key=_by_value, reverse=descending)
            chosen = [place for _, place in told] + [place for value, place in sortable if value is None]
        if query.limit is not None:
            chosen = chosen[: query.limit]
        columns = [shown.column(output) for _, output in query.outputs]
        rows = tuple(tuple([column[place] for column in columns]) for place in chosen)
        return Answer(
            columns=_titles(query), rows=rows, loss=plan.cost, cached=cached, remaining=self.remaining(),
            explanation=explain(plan),
        )  # fmt: skip


def _arrow(source: Any) -> Any:
    return source.to_arrow() if isinstance(source, pl.DataFrame) else source


def _failed() -> SfumatoError:
    return AnswerFailed(
        "The question could not be computed. Its cost stays charged.",
        fix="Ask the data's owner; the reason is kept from analysts because it may depend on the data.",
    )


def _compare(a: Any, b: Any) -> int:
    """An order over all values a column can hold: missing ones last."""
    if a is None or b is None:
        return (a is None) - (b is None)
    return int(a > b) - int(a < b)


_by_value = cmp_to_key(lambda a, b: _compare(a[0], b[0]))  # type: ignore[index]


def _titles(query: Query) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    titles = []
    for name, _ in query.outputs:
        seen[name] = seen.get(name, 0) + 1
        titles.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(titles)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date | datetime) else value


def _write(released: NoisyTable) -> str:
    def part(value: Any) -> Any:
        if isinstance(value, datetime):
            return {"datetime": value.isoformat()}
        return {"date": value.isoformat()} if isinstance(value, date) else value

    keys = [[part(value) for value in key] for key in released.keys]
    return json.dumps({"keys": keys, "values": {str(i): list(v) for i, v in released.values.items()}})


def _read(body: str) -> NoisyTable:
    def part(value: Any) -> Any:
        if isinstance(value, dict):
            [(kind, text)] = value.items()
            return (datetime if kind == "datetime" else date).fromisoformat(text)
        return value

    data = json.loads(body)
    keys = tuple(tuple([part(value) for value in key]) for key in data["keys"])
    return NoisyTable(keys=keys, values={int(i): tuple(v) for i, v in data["values"].items()})
