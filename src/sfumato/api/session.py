"""``sfumato.session``: open a data set for SQL queries, from a metadata file or from tables in memory."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import BadParameter, InvalidRecipe, Problem

if TYPE_CHECKING:
    from sfumato.engines.engine import Engine
    from sfumato.query import Session
    from sfumato.query.metadata import Metadata
    from sfumato.rationals import Number

__all__ = ["load_metadata", "session"]


def session(
    metadata: str | Path | Mapping[str, Any],
    tables: Mapping[str, Any] | None = None,
    *,
    analyst: str | None = None,
    epsilon: Number | None = None,
    delta: Number = 0,
    engine: Engine | str | None = None,
) -> Session:
    """Open a data set for SQL queries: a session with ``ask`` and ``explain``.

    Queries are answered by the ``policy`` of the metadata, differential privacy by default.

    Parameters
    ----------
    metadata
        The owner's metadata file, or the same as a mapping.
    tables
        Frames (pandas, Polars, Arrow) or files to query instead of the ``data`` of each table. A mapping may then leave
        ``data`` out.
    analyst
        Whose budget is charged; the user name if left out.
    epsilon, delta
        Budget of a session without a ledger. It ends with the session, so it gives no protection across sessions. With
        a ledger in the metadata, the budget is that of the ledger.
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
    >>> metadata = {"dataset": "trial", "tables": {"people": {"unit": "row", "columns": {"ward": wards}}}}
    >>> trial = session(metadata, {"people": people}, epsilon=1)
    >>> trial.ask("SELECT ward, COUNT(*) AS n FROM people GROUP BY ward", epsilon="0.5").columns
    ('ward', 'n')
    """
    from sfumato.dp.loss import approximate, pure
    from sfumato.ledger.ledger import UNKEPT, Ledger

    frames = dict(tables or {})
    loaded, base = load_metadata(metadata, frames)
    unknown = [name for name in frames if name not in loaded.tables]
    if unknown:
        raise BadParameter(f"The metadata have no table `{unknown[0]}`.", fix=f"Known: {', '.join(loaded.tables)}.")
    trial = loaded.ledger == UNKEPT
    if loaded.policy is not None and epsilon is not None:
        raise BadParameter(
            f"Policy `{loaded.policy.part_name()}` has no budget.", fix="Leave out epsilon, or change the policy."
        )
    if loaded.policy is None and trial == (epsilon is None):
        raise BadParameter(
            "A session without a ledger needs a budget." if trial else "The budget is that of the ledger.",
            fix="Pass epsilon, or name a ledger in the metadata." if trial else "Set it with `sfumato ledger cap`.",
        )
    ledger = Ledger.unkept() if trial else Ledger.open(loaded.ledger_place(base))
    if epsilon is not None:
        ledger.set_cap(approximate(epsilon, delta) if delta else pure(epsilon), dataset=loaded.dataset)
    return loaded.session(base=base, analyst=analyst or getpass.getuser(), ledger=ledger, tables=frames, engine=engine)


def load_metadata(metadata: str | Path | Mapping[str, Any], frames: Mapping[str, Any]) -> tuple[Metadata, Path]:
    """The metadata from a file or a mapping, and the folder that its paths are relative to."""
    from pydantic import ValidationError

    from sfumato.ledger.ledger import UNKEPT
    from sfumato.params import plain_message
    from sfumato.query.metadata import Metadata, load

    if isinstance(metadata, str | Path):
        return load(Path(metadata)), Path(metadata).parent
    document = {"sfumato": 1, "ledger": UNKEPT, **metadata}
    if isinstance(document.get("tables"), Mapping):
        document["tables"] = {
            name: {"data": name, **table} if name in frames and isinstance(table, Mapping) else table
            for name, table in document["tables"].items()
        }
    try:
        return Metadata.model_validate(document), Path()
    except ValidationError as failure:
        problems = [
            Problem(where=".".join(map(str, error["loc"])), line=None, message=plain_message(error))
            for error in failure.errors()
        ]
        raise InvalidRecipe(problems, source="metadata") from None
