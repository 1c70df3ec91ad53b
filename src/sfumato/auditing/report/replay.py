"""Replay of a query log against a table: what an auditor decides about each query, in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfumato.auditing.audit_log import DurableAuditor
from sfumato.auditing.auditor import Auditor
from sfumato.auditing.offers import offers
from sfumato.auditing.rules import AuditRules
from sfumato.data import Table, read
from sfumato.dataset import Domain, Role
from sfumato.dataset.document import Dataset
from sfumato.errors import BadParameter, FileMissing
from sfumato.ledger.stores.sqlite import SqliteStore
from sfumato.params import plain_message
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class AuditedTable:
    """A table and the auditor of the questions about it."""

    auditor: Auditor
    name: str
    """What the ledger calls it, if it is not given another name."""
    place: str | None
    """File or database URL; None for a table in memory."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The decisions about the queries of a log. For the owner only: they say whose value an answer would expose."""

    k: int
    decisions: tuple[Mapping[str, Any], ...]

    @property
    def refused(self) -> int:
        """The number of refused queries."""
        return sum(decision["decision"] == "refused" for decision in self.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``sfumato audit --json`` prints."""
        decisions = list(self.decisions)
        return {"k": self.k, "questions": len(decisions), "refused": self.refused, "decisions": decisions}


def audited_table(
    data: object = None,
    *,
    document: str | Path | None = None,
    secrets: Iterable[str] = (),
    domains: Mapping[str, Domain] | None = None,
    **rules: object,
) -> AuditedTable:
    """A table with the auditor of its questions.

    Parameters
    ----------
    data
        A file, a database URL or a table; that of the document if left out.
    document
        Data set document, recipe or plan. It declares the sensitive columns, the domains and, by ``answering: {policy:
        {audit: {k: 2}}}``, the rules.
    secrets
        The sensitive columns; those of the document if left out.
    domains
        Possible values of sensitive columns, beside those of the document.
    **rules
        Fields of :class:`sfumato.auditing.rules.AuditRules`, which go before those of the document.
    """
    loaded = None if document is None else Recipe.load(document)
    source = loaded.source if loaded is not None and data is None else None
    if data is None and source is None:
        raise FileMissing("`data` is required.", fix="Pass the option `data`, or a recipe with `data:`.", option="data")
    columns = {} if loaded is None else loaded.schema.columns
    names = tuple(secrets) or tuple(name for name, column in columns.items() if column.role is Role.SENSITIVE)
    if not names:
        raise BadParameter(
            "a sensitive column is required.",
            fix="Name it in `secrets`, or set the role `sensitive` in the recipe.",
            option="secrets",
        )
    table = source.read() if source is not None else data if isinstance(data, Table) else read(data)
    table.require(list(names))
    possible = {name: column.domain for name, column in columns.items() if column.domain is not None}
    auditor = Auditor(
        table.frame, secrets=names, rules=_rules(document, rules), domains={**possible, **(domains or {})}
    )
    place = source.location if source is not None else str(data) if isinstance(data, str | Path) else None
    return AuditedTable(auditor=auditor, name=Path(place or "table").stem, place=place)


def _rules(document: str | Path | None, given: Mapping[str, object]) -> AuditRules:
    """The rules that are given; the others as the document declares them."""
    policy = None if document is None else Dataset.load(document).answering.policy
    declared: dict[str, object] = {}
    if isinstance(policy, AuditRules):
        declared = policy.model_dump(include=policy.model_fields_set)
    if "k" not in {**declared, **given}:
        raise BadParameter(
            "`k` is required: the smallest number of possible values that each person must keep.",
            fix="Pass `k`, or declare `answering: {policy: {audit: {k: 2}}}` in the document.",
            option="k",
        )
    try:
        return AuditRules.model_validate({**declared, **given})
    except ValidationError as failure:
        raise BadParameter("; ".join(plain_message(error) for error in failure.errors())) from None


def replay_log(
    queries: Iterable[str],
    table: AuditedTable,
    *,
    ledger: str | Path | None = None,
    dataset: str | None = None,
    progress: Progress = SILENT,
) -> Replay:
    """Decide the queries of a log in order: answered, answered with counterfeits, or refused.

    >>> import polars as pl
    >>> ward = Table(frame=pl.DataFrame({"zip": [1, 1, 2], "ill": ["flu", "none", "flu"]}))
    >>> log = ["SELECT ill FROM ward WHERE zip = 1", "SELECT ill FROM ward WHERE zip = 2"]
    >>> replay_log(log, audited_table(ward, secrets=["ill"], k=2)).refused
    1

    Parameters
    ----------
    queries
        SQL, in the order in which they are asked.
    ledger
        SQLite file that keeps the decisions, which bind the next replay. Nothing is kept if left out.
    dataset
        Name of the table in the ledger; that of its file if left out.
    """
    auditor, session = table.auditor, None
    if ledger is not None:
        store = SqliteStore(Path(ledger))
        session = DurableAuditor(auditor, store, dataset=dataset or table.name, place=table.place)
    asked, most, decisions = list(queries), auditor.rules.offers, []
    with progress.task("auditing", len(asked)) as tick:
        for query in asked:
            decision = (session or auditor).ask(query)
            named = offers(auditor, query, most=most) if most and decision.verdict == "refused" else ()
            decisions.append({**decision.to_dict(), **({"offers": list(named)} if most else {})})
            tick(1)
    return Replay(k=auditor.rules.k, decisions=tuple(decisions))
