"""Constraints on synthetic rows that are checked before any budget is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from sfumato.errors import BadParameter
from sfumato.synthesis.column_domain import ColumnCells

_PROBES = 20_000
"""Rows of random declared values that are drawn to see whether the constraints can be met."""


def check_constraints(
    rules: Sequence[str], cells: Mapping[str, ColumnCells | None], types: Mapping[str, pl.DataType]
) -> None:
    """Refuse rules about other columns or types, and rules that no declared values meet. No data is read."""
    empty = pl.DataFrame(schema=types)
    for rule in rules:
        try:
            kind = empty.select(pl.sql_expr(rule)).dtypes
        except pl.exceptions.PolarsError:
            kind = []
        if kind != [pl.Boolean]:
            raise BadParameter(
                f"private-synthesis: `{rule}` is not a condition on the synthesized columns.",
                fix="Use released columns, and compare numbers with numbers and text with text.",
            )
    random = np.random.default_rng(0)
    drawn = pl.DataFrame(
        [
            one.decode(name, random.integers(1, one.size, _PROBES).astype(np.int32), random)
            for name, one in cells.items()
            if one is not None
        ]
    )
    checked = [rule for rule in rules if "null" not in rule.lower() and _columns(rule) <= set(drawn.columns)]
    if checked and not drawn.filter(*map(pl.sql_expr, checked)).height:
        raise BadParameter(
            f"private-synthesis: none of {_PROBES} rows of declared values meets all constraints.",
            fix="Check `constraints` and the domains of their columns.",
        )


def _columns(rule: str) -> set[str]:
    return set(pl.sql_expr(rule).meta.root_names())
