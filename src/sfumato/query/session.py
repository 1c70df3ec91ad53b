"""Sessions: one analyst asks one data set, under the policy that its owner chose.

Under differential privacy the order of an answer is fixed: parse the query, plan the noise, compute the loss twice,
look up an earlier answer, reserve the cost, run, add noise, store the answer, return it. A refusal comes before the
reservation and depends on the query and the public catalog only. A failure after the reservation has one message for
all reasons and keeps its cost.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack
from uuid import uuid4

import polars as pl

from sfumato.data.url import file_and_options
from sfumato.dp.loss import PrivacyLoss, sequential
from sfumato.dp.receipt import Receipt
from sfumato.engines.choice import choose_engine, is_address
from sfumato.engines.engine import Engine, Running, failed
from sfumato.engines.expressions import FALSE
from sfumato.engines.statements import Query as Statement
from sfumato.engines.statements import Select, Subquery
from sfumato.errors import AnswerFailed, BadParameter, MetadataMissing, QueryRefused
from sfumato.ledger.charge import Charge
from sfumato.ledger.entries import Entry
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.parts import DataPart
from sfumato.ledger.policy_tables import refuse_registered
from sfumato.proof.certificate import digest, signed
from sfumato.query.answer_key import answer_key, data_version, restore_table, store_table
from sfumato.query.builder import Builder
from sfumato.query.certificate import CertifiedPlan, certificate_of, charge_record, plan_rows, stated_plans
from sfumato.query.compound import ask_parts, explain_parts
from sfumato.query.costing import cost_of, plan_at_cost
from sfumato.query.execute.executor import NoisyTable, check_plan, execute_plan
from sfumato.query.execute.timing import quantize_response
from sfumato.query.file_contents import contents_digest
from sfumato.query.options import CheckedOptions, QueryOptions, check_min_epsilon
from sfumato.query.plan.accuracy import doubling_plans, error_reached
from sfumato.query.plan.catalog import Catalog
from sfumato.query.plan.noise import NoisePlan
from sfumato.query.plan.parts import part_read
from sfumato.query.plan.query import Query
from sfumato.query.policy.base import Policy
from sfumato.query.results.analysis import analysis
from sfumato.query.results.answer import Answer, answer_rows, column_titles, html_table
from sfumato.query.results.explain import Explanation, explain
from sfumato.query.results.kept import kept_share, limits_of
from sfumato.query.results.postprocess import NoisyValue
from sfumato.query.results.public_schema import describe_table, list_tables, schema_answer
from sfumato.query.sql.bind import scan_table
from sfumato.query.sql.parse import parse_query
from sfumato.query.workload import WorkloadAnswer, answer_workload, plan_workload
from sfumato.rationals import Number, rational

if TYPE_CHECKING:
    from sfumato.query.dbapi import Connection
    from sfumato.query.fit_limits import FittedLimits

__all__ = ["Answer", "QueryOptions", "Session"]
AnyAnswer = TypeVar("AnyAnswer", Answer, WorkloadAnswer)


class Session:
    """Answers one analyst's queries about one data set.

    >>> from sfumato.demos.private_hospital import flu
    >>> session = flu(people=200, budget=10)
    >>> answer = session.ask("SELECT COUNT(*) FROM patients", epsilon=1)
    >>> answer.cached, session.ask("select count(*) from patients", epsilon=1).cached
    (False, True)
    """

    def __init__(
        self,
        catalog: Catalog,
        tables: Mapping[str, object],
        *,
        ledger: Ledger,
        analyst: str,
        policy: Policy | None = None,
        engine: Engine | str | None = None,
        response_interval: float | None = None,
        version: str = "",
        repeated_queries: Literal["cached", "charged"] = "cached",
        min_epsilon: Number | None = None,
    ) -> None:
        missing = [name for name in catalog.private if name not in tables]
        if missing:
            raise BadParameter(f"no data was given for table `{missing[0]}`.")
        self.catalog = catalog
        self.ledger = ledger
        self.analyst = analyst
        self.policy = policy
        """How queries are answered; None for differential privacy."""
        self.response_interval = response_interval
        """Seconds. Answers and refusals come at multiples of it, which hides how long a run took."""
        self.version = version
        """The owner's name for the present state of tables in a database; a new one makes repeated queries new."""
        self.repeated_queries = repeated_queries
        """Whether a query that somebody else asked is free, or charged as a new one."""
        self.min_epsilon = min_epsilon
        """The smallest epsilon of a query; what its running time tells is then not almost free."""
        sources = {name: tables[name] for name in catalog.private}
        if policy is not None:
            self._refuse_options(engine=engine)
            [source] = sources.values()
            self._responder = policy.open_table(catalog, source, ledger.store)
            return
        refuse_registered(ledger.store, dataset=catalog.dataset, places=sources.values())
        self._sources, self._born = sources, uuid4().hex
        self._salt = ""
        public = {name: table.frame for name, table in catalog.public.items()}
        self._public = hashlib.sha256("\n".join(frame.write_csv() for frame in public.values()).encode()).hexdigest()
        self._opened = self._contents() if catalog.parts else None
        opened = {name: _arrow(source) for name, source in (sources | public).items()}
        self._engine: Running = choose_engine(engine, sources.values()).start(opened)
        self._check_columns()

    def for_analyst(self, analyst: str, ledger: Ledger) -> Session:
        """The same open tables for another analyst, who is charged in ``ledger``. It must have the same database."""
        session = copy(self)
        session.analyst, session.ledger = analyst, ledger
        return session

    def move_memory_from(self, ledger: Ledger) -> None:
        """Keep what a policy must remember in the session's ledger alone, and no longer in this one."""
        if self.policy is not None:
            self._responder.move_from(ledger.store)

    @property
    def running(self) -> Running:
        """The open tables. What is computed on them is secret."""
        return self._engine

    @property
    def _policy_name(self) -> str:
        return "differential-privacy" if self.policy is None else self.policy.part_name()

    def _facts(self) -> str:
        left = self.remaining() if self.policy is None else None
        budget = "" if left is None else f", left {left}"
        return f"data set {self.catalog.dataset}, analyst {self.analyst}, policy {self._policy_name}{budget}"

    def __repr__(self) -> str:
        return f"<Session: {self._facts()}>"

    def _repr_html_(self) -> str:
        """The declared tables with their columns, the policy and the remaining budget; no data is read."""
        parts = [f"<p>{escape(self._facts())}</p>"]
        for name, access, unit in list_tables(self.catalog)[1]:
            about = f"{access} table, unit: {unit}" if unit else f"{access} table"
            head, rows = describe_table(self.catalog, name)
            parts.append(f"<p><strong>{escape(name)}</strong> ({escape(about)})</p>{html_table(head, rows)}")
        return "".join(parts)

    def _check_columns(self) -> None:
        """Refuse declared columns that the data lack: every query would fail at its full cost."""
        for table in self.catalog.private.values():
            scan = scan_table(self.catalog, table)
            readable = tuple(name for name in scan.names if self._readable(replace(scan, names=(name,)).query()))
            try:
                self._engine.run(Select((), Subquery(replace(scan, names=readable).query()), where=FALSE, star=True))
            except AnswerFailed:
                raise MetadataMissing(
                    f"Not all declared columns of `{table.name}` can be read from its data.",
                    fix="Compare the metadata with the data.",
                ) from None

    def _readable(self, query: Statement) -> bool:
        """Whether the engine reads a column as declared; queries that use another one are refused at no cost."""
        try:
            self._engine.check(query)
        except QueryRefused:
            return False
        return True

    def _refuse_options(self, **options: Any) -> None:
        """Refuse options of differential privacy where another policy answers."""
        assert self.policy is not None
        for name, value in options.items():
            if value not in (None, 0, "0"):
                raise BadParameter(
                    f"`{name}` belongs to differential privacy; this data set is answered by policy "
                    f"`{self.policy.part_name()}`, which has no budget.",
                    fix="Leave it out.",
                )

    def explain(self, sql: str, **options: Unpack[QueryOptions]) -> Explanation:
        """How a query would be answered: its cost and expected error. Reads no data and costs nothing.

        With a relative error (``ERROR 5%``) it tells the most the query may cost.
        """
        schema = schema_answer(sql, self.catalog, policy=self._policy_name)
        if schema is not None:
            return schema.explanation
        if self.policy is not None:
            self._refuse_options(**options)
            self._responder.parse(sql)
            return self._policy_explanation()
        whole = explain_parts(self, sql, CheckedOptions(**options))
        if whole is not None:
            return whole
        query = parse_query(sql, self.catalog)
        if query.target is not None and query.target.relative:
            query = replace(query, target=None)
        plan = self.plan_noise(query, CheckedOptions(**options))
        return explain(plan, part=self._part_read([plan]))

    def analyze(self, sql: str, **options: Unpack[QueryOptions]) -> str:
        """The privacy analysis of a query, for reviewers: its tree of rows, each measurement and its bounds. Free."""
        if self.policy is not None:
            raise BadParameter(f"policy `{self.policy.part_name()}` has no privacy analysis.", fix="Use explain().")
        query = replace(parse_query(sql, self.catalog), target=None)
        return analysis(self.plan_noise(query, CheckedOptions(**options)))

    def ask(self, sql: str, **options: Unpack[QueryOptions]) -> Answer:
        """The answer to a query. The same query at the same cost gets the same answer again, for free, for everybody.

        Under differential privacy, ``epsilon`` (with ``delta`` for Gaussian noise or private group keys) or ``rho`` is
        the cost. A query that ends in ``ERROR 50 CONFIDENCE 95%`` finds its own epsilon. One that ends in ``ERROR 5%``
        is asked at doubling costs, up to ``epsilon`` in all, until the noisy answer shows that its error is small
        enough. ``rows``, ``groups`` and ``bounding`` change accuracy and cost nothing. Other policies take no options
        and refuse with :class:`~sfumato.errors.AnswerDenied`.

        ``SHOW TABLES`` and ``DESCRIBE table`` list the declared schema, which is public, and cost nothing.
        """
        schema = schema_answer(sql, self.catalog, policy=self._policy_name)
        if schema is not None:
            return schema
        with quantize_response(self.response_interval):
            if self.policy is not None:
                self._refuse_options(**options)
                return self._ask_policy(sql)
            settings = CheckedOptions(**options)
            whole = ask_parts(self, sql, settings)
            if whole is not None:
                return whole
            query = parse_query(sql, self.catalog)
            if query.target is not None and query.target.relative:
                return self._reach_error(query, settings, sql)
            return self.run_plan(self.plan_noise(query, settings), sql)

    def _policy_explanation(self, *more: str) -> Explanation:
        assert self.policy is not None
        return Explanation(policy=self.policy.part_name(), notes=(*self.policy.notes(), *more))

    def _ask_policy(self, sql: str) -> Answer:
        self._responder.parse(sql)
        self._responder.claim()
        answer = self._responder.ask(sql)
        false = (f"{answer.counterfeits} of the values are false: added so that nobody is exposed.",)
        return Answer(
            columns=(answer.title,),
            rows=tuple((NoisyValue(value=value),) for value in answer.values),
            explanation=self._policy_explanation(*(false if answer.counterfeits else ())),
            counterfeits=answer.counterfeits,
        )

    def recall(self, key: str, whole: str | None = None) -> str | None:
        """The stored answer to a query, where this analyst gets it for free; ``whole``: the query it is a part of."""
        stored = self.ledger.recall(key)
        if stored is None or self.repeated_queries == "cached":
            return stored
        names = [key] if whole is None else [key, whole]
        paid = [self.ledger.paid(dataset=self.catalog.dataset, analyst=self.analyst, query=name) for name in names]
        return None if all(entry is None for entry in paid) else stored

    def charge(
        self, cost: PrivacyLoss, key: str, text: str, plans: Mapping[str, CertifiedPlan] | None = None
    ) -> Receipt:
        """Charge a query. If somebody else's answer is stored, it is returned in the end, at the cost of a new one.

        ``plans`` are those of the answers by their keys, which their certificates will state.
        """
        check_min_epsilon(cost, self.min_epsilon)
        paid = list((plans or {}).values())
        stated = stated_plans(paid, self.catalog.part_columns)

        def records(entry: Entry) -> dict[str, str]:
            return dict.fromkeys(plans or (), json.dumps(charge_record(entry, cost, stated)))

        return self.ledger.charge(
            Charge(
                loss=cost, unit=self.catalog.unit, what=text, key=key,
                plan=digest(stated) if paid else "",
                part=self.part_of(paid) if paid else None,
            ),
            dataset=self.catalog.dataset,
            analyst=self.analyst,
            records=records if paid else None,
        )  # fmt: skip

    def part_of(self, plans: Iterable[CertifiedPlan]) -> DataPart | None:
        """The part of the data set that all plans read, as the ledger names it; None for the whole."""
        read = self._part_read(plans)
        if read is None:
            return None
        # People may be in another part once the data or the way to read them changes: those are another partition.
        name, value = read
        [table] = self.catalog.private.values()
        kind = self.catalog.part_columns[name].kind
        declared = table.schema.columns[name].model_dump_json(include={"kind", "domain", "missing", "missing_codes"})
        read_as = f"{self._state()}\x1f{type(self._engine).__qualname__}\x1f{table.name}\x1f{name}\x1f{declared}"
        return DataPart(partition=f"{name} {kind} {hashlib.sha256(read_as.encode()).hexdigest()[:16]}", name=str(value))

    def _part_read(self, plans: Iterable[CertifiedPlan]) -> tuple[str, int | str] | None:
        """The column and the value of the part that all plans read; None for the whole.

        Only while the one source is the file as it was opened: of other data, the contents are not known.
        """
        columns = self.catalog.part_columns
        if not columns or self._opened is None or self._opened != self._contents():
            return None
        return part_read((plan_rows(plan) for plan in plans), columns)

    def _contents(self) -> str | None:
        """The present contents of the file that is split into parts; None where there is none."""
        [source] = self._sources.values()
        if is_address(source) or not isinstance(source, str | Path):
            return None
        return contents_digest(Path(file_and_options(source)[0]))

    def certificate(self, key: str) -> dict[str, Any] | None:
        """The certificate of the answer under a key; None if its charge was not recorded."""
        record = self.ledger.recall_charge(key, self.analyst)
        return None if record is None else self.joint_certificate([{"charges": [json.loads(record)]}])

    def joint_certificate(self, parts: Sequence[Mapping[str, Any] | None]) -> dict[str, object] | None:
        """The certificate of an answer of several parts; None where a part has none."""
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        charges = [charge for part in known for charge in part["charges"]]
        return certificate_of(charges, dataset=self.catalog.dataset, unit=self.catalog.unit)

    def signed(self, answer: AnyAnswer) -> AnyAnswer:
        """The answer with its certificate signed by the key of the ledger, as it is given to somebody else."""
        if answer.certificate is None:
            return answer
        return replace(answer, certificate=signed(answer.certificate, self.ledger.signing_key()))

    def run_plan(self, plan: NoisePlan, text: str) -> Answer:
        return self.run_plans([plan], text)[0]

    def run_plans(self, plans: Sequence[NoisePlan], text: str) -> list[Answer]:
        """The answers to the parts of a query. All that are not stored are charged at once, or none."""
        keys = [self.key_of(plan) for plan in plans]
        whole = keys[0] if len(keys) == 1 else hashlib.sha256("\x1f".join(keys).encode()).hexdigest()
        stored = {key: body for key in keys if (body := self.recall(key, whole)) is not None}
        fresh = {key: plan for key, plan in zip(keys, plans, strict=True) if key not in stored}
        for plan in fresh.values():
            check_plan(plan, self._engine)
        if fresh:
            costs = [plan.cost for plan in fresh.values()]
            total = costs[0] if len(costs) == 1 else sequential(costs)
            receipt = self.charge(total, whole, text, fresh)
            receipts = (receipt,) if len(costs) == 1 else receipt.split(*costs)
            for (key, plan), own in zip(fresh.items(), receipts, strict=True):
                # A concurrent session may have stored its answer to the same query first: then that one is returned.
                stored[key] = self.ledger.remember(key, store_table(plan, self._compute(plan, own)))
        return [
            self.answer(
                plan, restore_table(plan, stored[key]), key=key, cached=key not in fresh, paid_with=[*fresh.values()]
            )
            for key, plan in zip(keys, plans, strict=True)
        ]

    def _compute(self, plan: NoisePlan, receipt: Receipt) -> NoisyTable:
        try:
            return execute_plan(plan, self._engine, receipt)
        except AnswerFailed:
            raise
        except Exception:
            raise failed() from None  # in the same words as the engine: the reason could depend on the data

    def _reach_error(self, query: Query, options: CheckedOptions, text: str) -> Answer:
        """Ask at doubling costs until the noisy answer is accurate enough; the loss is that of all steps."""
        if options.epsilon is None or options.rho is not None:
            raise BadParameter("a relative error needs an epsilon that it may cost at most.")
        losses: list[PrivacyLoss] = []
        certificates: list[Mapping[str, object] | None] = []
        fresh = False
        answer: Answer | None = None
        for plan in doubling_plans(query, rational(options.epsilon), rational(options.delta), options.limits):
            answer = self.run_plan(plan, text)
            losses.append(plan.cost)
            certificates.append(answer.certificate)
            fresh = fresh or not answer.cached
            if error_reached(query, plan, float(answer.value)):
                break
        else:
            assert answer is not None
            missed = (*answer.explanation.notes, "The wanted error was not reached for this epsilon.")
            answer = replace(answer, explanation=replace(answer.explanation, notes=missed))
        return replace(
            answer, loss=sequential(losses), cached=not fresh, certificate=self.joint_certificate(certificates)
        )

    def connect(self, *, intervals: bool = False, **options: Unpack[QueryOptions]) -> Connection:
        """A DB-API 2.0 connection: ``pandas.read_sql(sql, session.connect(epsilon="0.1"))``.

        Every query costs what ``options`` say. ``intervals`` adds the columns ``_low`` and ``_high``.
        """
        from sfumato.query.dbapi import Connection

        return Connection(self, intervals=intervals, options=options)

    def table(self, name: str) -> Builder:
        """Start a query without SQL: ``session.table("patients").by("ward").count().ask(epsilon=1)``."""
        return Builder(session=self, source=name)

    def fit_limits(
        self, table: str, *, epsilon: Number, by: Sequence[str] = (), share: Number = "0.95", most: int = 100
    ) -> FittedLimits:
        """Choose ``rows`` and ``groups`` privately, for queries of a table that GROUP BY the columns ``by``.

        The limits fit a share of the people; ``most`` is the largest that may be chosen. The noisy share of people of
        whom nothing is cut comes with them.
        """
        from sfumato.query.fit_limits import fit_limits

        return fit_limits(self, table, epsilon=epsilon, by=by, share=share, most=most)

    def workload(
        self,
        queries: Sequence[str],
        *,
        epsilon: Number | None = None,
        delta: Number = 0,
        rho: Number | None = None,
        rows: int | None = None,
        groups: int | None = None,
        fit: Number | None = None,
    ) -> WorkloadAnswer:
        """Many counts for one cost, by the matrix mechanism; the answer names the measurements that were chosen."""
        if self.policy is not None:
            raise BadParameter(
                f"workloads need differential privacy; this data set is answered by policy "
                f"`{self.policy.part_name()}`.",
                fix="Use ask() for each query.",
            )
        if (epsilon is None) == (rho is None):
            raise BadParameter("a workload needs its cost.", fix="Pass epsilon or rho.")
        cost = cost_of(CheckedOptions(epsilon=epsilon, delta=delta, rho=rho))
        limits = CheckedOptions(rows=rows, groups=groups, fit=fit).limits
        with quantize_response(self.response_interval):
            return answer_workload(self, plan_workload(self, queries, cost, **limits))

    def remaining(self) -> PrivacyLoss | None:
        """The smallest remaining budget: of the data set, of this analyst on it, and of this analyst."""
        accounts = (self.catalog.dataset, ""), (self.catalog.dataset, self.analyst), ("", self.analyst)
        unit = self.catalog.unit
        left = [self.ledger.balance(dataset=dataset, analyst=analyst, unit=unit).left for dataset, analyst in accounts]
        known = [loss for loss in left if loss is not None]
        return min(known, key=lambda loss: loss.composable().rho, default=None)

    def plan_noise(self, query: Query, options: CheckedOptions) -> NoisePlan:
        def budget_part(share: Number) -> Sequence[PrivacyLoss]:
            return self.ledger.part(share, dataset=self.catalog.dataset, analyst=self.analyst, unit=self.catalog.unit)

        return plan_at_cost(query, options, budget_part)

    def key_of(self, plan: NoisePlan) -> str:
        """The key under which the answer to a plan is kept: the same plan on the same data has the same one."""
        return answer_key(self.catalog.dataset, self._state(), plan)

    def _state(self) -> str:
        """The present state of the data. Hashes of it are published in certificates."""
        # The salt stays in the ledger: without it nobody can tell from a hash the size and the time of a file.
        self._salt = self._salt or self.ledger.salt()
        version = data_version(
            self._sources.values(),
            public=self._public,
            declared=self.version,
            session=self._born,
            contents=bool(self.catalog.parts),
        )
        return f"{self._salt}\n{version}"

    def answer(
        self, plan: NoisePlan, table: NoisyTable, *, key: str, cached: bool, paid_with: Sequence[NoisePlan] = ()
    ) -> Answer:
        """The answer to a plan from its noisy numbers; ``paid_with`` are all plans of one charge."""
        kept = kept_share(plan, table)
        part = self._part_read(paid_with or [plan])
        return Answer(
            columns=column_titles(plan.query), rows=answer_rows(plan, table), loss=plan.cost, cached=cached,
            remaining=self.remaining(), explanation=explain(plan, part=part), kept=kept, limits=limits_of(plan, kept),
            certificate=self.certificate(key),
        )  # fmt: skip


def _arrow(source: object) -> object:
    # A name of a file or a table is the common case; it loads no Polars, which the command line defers.
    if isinstance(source, str | Path) or not isinstance(source, pl.DataFrame):
        return source
    from sfumato.data.declared import frame_cells

    return frame_cells(source).to_arrow()
