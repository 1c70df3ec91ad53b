"""Open a data set for queries: the one constructor of sessions from a data set document.

Every door opens its sessions here: command line, Python, server, app and parties. What the owner declared under
``answering`` therefore holds behind each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from sfumato.dataset.document import Dataset
from sfumato.engines.engine import Engine
from sfumato.errors import MetadataMissing
from sfumato.ledger.ledger import Ledger
from sfumato.query.plan.catalog import Catalog
from sfumato.query.policy.base import Policy
from sfumato.query.session import Session


def open_session(
    dataset: Dataset,
    *,
    analyst: str,
    ledger: Ledger | None = None,
    tables: Mapping[str, object] | None = None,
    engine: Engine | str | None = None,
    response_interval: float | None = None,
) -> Session:
    """Open the tables for one analyst, under everything that the document says.

    ``ledger`` is charged instead of the document's own, ``tables`` are read instead of the data that it names, and
    answers come at multiples of the longer of the two intervals.
    """
    catalog = Catalog.of(dataset)
    sources = {name: table.data.address for name, table in dataset.tables.items()}
    answering = dataset.answering
    return Session(
        catalog,
        {**sources, **(tables or {})},
        ledger=open_ledger(dataset) if ledger is None else ledger,
        analyst=analyst,
        policy=cast("Policy | None", answering.policy),
        engine=engine,
        response_interval=max(response_interval or 0, answering.response_interval or 0) or None,
        version=dataset.version,
        repeated_queries=answering.repeated_queries,
        min_epsilon=answering.min_epsilon,
    )


def open_ledger(dataset: Dataset) -> Ledger:
    """The ledger that a document names."""
    if dataset.ledger is None:
        raise MetadataMissing(
            f"The document of `{dataset.dataset}` names no ledger, and answers cost budget.",
            fix="Add `ledger: ledger.db` and set a budget with `sfumato ledger cap`.",
        )
    return Ledger.open(dataset.ledger)
