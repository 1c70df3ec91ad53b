"""``sfumato.session``: open a data set for SQL queries, from its document or from tables in memory."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import BadParameter

if TYPE_CHECKING:
    from sfumato.dataset.document import Dataset
    from sfumato.engines.engine import Engine
    from sfumato.query import Session
    from sfumato.rationals import Number


def session(
    dataset: str | Path | Mapping[str, object],
    tables: Mapping[str, object] | None = None,
    *,
    analyst: str | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    engine: Engine | str | None = None,
) -> Session:
    """Open a data set for SQL queries: a session with ``ask`` and ``explain``.

    Queries are answered as the document says under ``answering``, by differential privacy by default.

    Parameters
    ----------
    dataset
        The owner's data set document, or the same as a mapping.
    tables
        Frames (pandas, Polars, Arrow) or files to query instead of the ``data`` of each table. A mapping may then leave
        ``data`` out.
    analyst
        Whose budget is charged; the user name if left out.
    epsilon, delta
        Budget of a session without a ledger. It ends with the session, so it gives no protection across sessions. With
        a ledger in the document, the budget is that of the ledger.
    engine
        ``duckdb``, ``postgres`` or ``spark``, or an engine; chosen by the location of the data if left out.

    Returns
    -------
    Session
        With ``ask(sql, epsilon=...)`` and ``explain(sql, ...)``.

    Examples
    --------
    >>> import polars as pl
    >>> people = pl.DataFrame({"ward": ["east", "west"] * 500})
    >>> wards = {"kind": "category", "domain": {"values": ["east", "west"]}}
    >>> document = {"dataset": "trial", "person": "row", "tables": {"people": {"columns": {"ward": wards}}}}
    >>> trial = session(document, {"people": people}, epsilon=1)
    >>> trial.ask("SELECT ward, COUNT(*) AS n FROM people GROUP BY ward", epsilon="0.5").columns
    ('ward', 'n')
    """
    from sfumato.dp.loss import approximate, pure
    from sfumato.ledger.ledger import UNKEPT, Ledger
    from sfumato.query.open_session import open_ledger, open_session

    frames = dict(tables or {})
    loaded = load_dataset(dataset, frames)
    policy = loaded.answering.policy
    unknown = [name for name in frames if name not in loaded.tables]
    if unknown:
        raise BadParameter(f"The data set has no table `{unknown[0]}`.", fix=f"Known: {', '.join(loaded.tables)}.")
    trial = loaded.ledger in (None, UNKEPT)
    if policy is not None and epsilon is not None:
        raise BadParameter(
            f"Policy `{policy.part_name()}` has no budget.", fix="Leave out epsilon, or change the policy."
        )
    if policy is None and trial == (epsilon is None):
        raise BadParameter(
            "A session without a ledger needs a budget." if trial else "The budget is that of the ledger.",
            fix="Pass epsilon, or name a ledger in the document." if trial else "Set it with `sfumato ledger cap`.",
        )
    ledger = Ledger.unkept() if trial else open_ledger(loaded)
    if epsilon is not None:
        ledger.set_cap(approximate(epsilon, delta) if delta else pure(epsilon), dataset=loaded.dataset)
    return open_session(loaded, analyst=analyst or getpass.getuser(), ledger=ledger, tables=frames, engine=engine)


def load_dataset(dataset: str | Path | Mapping[str, Any], frames: Mapping[str, Any]) -> Dataset:
    """The data set of a document or a mapping. Tables whose ``frames`` are given need no ``data``."""
    from sfumato.dataset.document import Dataset

    if isinstance(dataset, str | Path):
        return Dataset.load(dataset)
    document = {"sfumato": 1, **dataset}
    if isinstance(document.get("tables"), Mapping):
        document["tables"] = {
            name: {"data": name, **table} if name in frames and isinstance(table, Mapping) else table
            for name, table in document["tables"].items()
        }
    return Dataset.parse(document)
