"""Open a data set for queries, from a metadata file or from tables in memory."""

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

__all__ = ["session"]

_MEMORY = ":memory:"


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

    ``metadata`` is the owner's metadata file, or the same as a mapping. ``tables`` are frames (pandas, Polars, Arrow)
    or files to query instead of the ``data`` of each table, which a mapping may then leave out. Queries are answered by
    the ``policy`` of the metadata: differential privacy unless it names another one. Budgets are those of the ledger
    named in the metadata. Without a ledger, the session keeps its own until it ends, with the budget ``epsilon`` (and
    ``delta``): enough to try things, and no protection across sessions.

    >>> import polars as pl
    >>> people = pl.DataFrame({"ward": ["east", "west"] * 500})
    >>> wards = {"kind": "category", "domain": {"values": ["east", "west"]}}
    >>> described = {"dataset": "trial", "tables": {"people": {"unit": "row", "columns": {"ward": wards}}}}
    >>> trial = session(described, {"people": people}, epsilon=1)
    >>> trial.ask("SELECT ward, COUNT(*) AS n FROM people GROUP BY ward", epsilon="0.5").columns
    ('ward', 'n')
    """
    from sfumato.dp.ledger import Ledger
    from sfumato.dp.loss import approximate, pure
    from sfumato.query import Session

    given = dict(tables or {})
    loaded, base = _described(metadata, given)
    unknown = [name for name in given if name not in loaded.tables]
    if unknown:
        raise BadParameter(f"The metadata have no table `{unknown[0]}`.", fix=f"Known: {', '.join(loaded.tables)}.")
    trial = loaded.ledger == _MEMORY
    if loaded.policy is not None and epsilon is not None:
        raise BadParameter(
            f"Policy `{loaded.policy.part_name()}` has no budget.", fix="Leave out epsilon, or change the policy."
        )
    if loaded.policy is None and trial == (epsilon is None):
        raise BadParameter(
            "A session without a ledger needs a budget." if trial else "The budget is that of the ledger.",
            fix="Pass epsilon, or name a ledger in the metadata." if trial else "Set it with `sfumato ledger cap`.",
        )
    ledger = Ledger.open(_MEMORY if trial else loaded.ledger_place(base))
    if epsilon is not None:
        ledger.set_cap(approximate(epsilon, delta) if delta else pure(epsilon), dataset=loaded.dataset)
    return Session(
        loaded.catalog(base),
        {**loaded.sources(base), **given},
        ledger=ledger,
        analyst=analyst or getpass.getuser(),
        policy=loaded.policy,
        engine=engine,
        version=loaded.version,
    )


def _described(metadata: str | Path | Mapping[str, Any], given: Mapping[str, Any]) -> tuple[Metadata, Path]:
    from pydantic import ValidationError

    from sfumato.params import plain_message
    from sfumato.query.metadata import Metadata, load

    if isinstance(metadata, str | Path):
        return load(Path(metadata)), Path(metadata).parent
    described = {"sfumato": 1, "ledger": _MEMORY, **metadata}
    if isinstance(described.get("tables"), Mapping):
        described["tables"] = {
            name: {"data": name, **table} if name in given and isinstance(table, Mapping) else table
            for name, table in described["tables"].items()
        }
    try:
        return Metadata.model_validate(described), Path()
    except ValidationError as failure:
        problems = [
            Problem(where=".".join(map(str, error["loc"])), line=None, message=plain_message(error))
            for error in failure.errors()
        ]
        raise InvalidRecipe(problems, source="metadata") from None
