"""Masking by columns: a step runs on the columns that it reads, loaded from a file that is larger than memory.

The step is the one that runs in memory, with the same random numbers, so the masked values are the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Data
from sfumato.engines.stored_table import ROW, StoredTable
from sfumato.errors import NotApplicable
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.registry import registry

_WORKING_COPIES = 4
"""Memory that a step needs, as a multiple of the columns it reads: sorting and the masked columns."""


def apply_by_columns(step: Step, table: StoredTable, context: Context) -> StoredChange:
    """Run a step on the columns it declares in ``column_passes``, one pass after another."""
    passes = step.column_passes(table.empty)
    if not passes:
        raise _needs_all_rows(step)
    public: dict[str, object] = {}
    private: dict[str, object] = {}
    touched: frozenset[str] = frozenset()
    for part, names in passes:
        _check_memory(step, table, names)
        frame = table.numbered(names)
        numbers, data = frame.get_column(ROW), Data(table=Table(frame=frame.select(names)), schema=table.schema)
        del frame
        change = part.apply(data, context)
        if change.rows is not None and bool((change.rows < 0).any()):
            raise _needs_all_rows(step)
        before, after = data.table.frame, change.table.frame
        table = table.without([name for name in names if name not in after.columns])
        masked = [
            column
            for column in after
            if change.rows is not None or not column.equals(before.get_column(column.name), check_dtypes=True)
        ]
        if masked or change.rows is not None:
            kept = numbers if change.rows is None else numbers.gather(change.rows.astype(np.uint32))
            table = table.with_columns(pl.DataFrame([kept, *masked]))
        public, private = _merged(public, change.public), _merged(private, change.private)
        touched |= change.touched
    return StoredChange(table=table, public=public, private=private, touched=touched)


def _check_memory(step: Step, table: StoredTable, names: tuple[str, ...]) -> None:
    needed, limit = table.bytes_of(names) * _WORKING_COPIES, table.workspace.memory
    if needed > limit:
        raise NotApplicable(
            f"The step {step.part_name()} needs about {needed / 1e9:.1f} GB for {len(names)} columns of {table.rows:,} "
            f"rows; the limit is {limit / 1e9:.1f} GB.",
            fix="Raise `memory`, mask fewer columns at a time, or use `generalize`, which needs no rows in memory.",
            option="memory",
            step=step.part_name(),
        )


def _needs_all_rows(step: Step) -> NotApplicable:
    able = [method.part_name() for method in registry("method") if getattr(method, "out_of_core", False)]
    return NotApplicable(
        f"The step {step.part_name()} needs all rows in memory.",
        fix=f"Large files take {', '.join(f'`{name}`' for name in able)}. Take a sample for other steps.",
        step=step.part_name(),
    )


def _merged(first: Mapping[str, object], second: Mapping[str, object]) -> dict[str, object]:
    """The outcomes of two passes as one: lists are joined, tables united, counts added."""
    merged = dict(first)
    for key, value in second.items():
        match merged.get(key), value:
            case dict() as old, dict() as new:
                merged[key] = _merged(old, new)
            case list() as old, list() as new:
                merged[key] = [*old, *new]
            case bool(), _:
                merged[key] = value
            case int() | float() as old, int() | float() as new:
                merged[key] = old + new
            case _:
                merged[key] = value
    return merged
