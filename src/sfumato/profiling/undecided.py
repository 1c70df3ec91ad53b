"""Undecided columns: the refusal to release a column whose role nobody has decided, or unchanged without a reason."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sfumato.dataset import Column, Role, Schema
from sfumato.dataset.column import PLAIN_FIX, plain_needs_reason
from sfumato.errors import UndecidedColumns
from sfumato.profiling.exposure import Exposure, exposures

_UNCHANGED = (Role.UNDECIDED, Role.PLAIN, Role.SENSITIVE)
"""Roles of columns that would leave as they are. Quasi-identifiers are masked, so they are not combined with these."""
CHOICES = (
    "identifier or drop (removed), quasi (known to outsiders: masked), sensitive (must stay secret: leaves unchanged,"
    " protected by the models), plain (leaves unchanged)"
)


def undecided(schema: Schema, frame: pl.DataFrame, *, unnamed: bool = False) -> tuple[Exposure, ...]:
    """Columns with the role ``undecided``, and those that the schema does not name if ``unnamed``.

    Each has the share of rows that it singles out if it leaves unchanged; 0 if there are no rows.
    """
    names = [
        name
        for name in frame.columns
        if schema.column(name).role is Role.UNDECIDED or (unnamed and name not in schema.columns)
    ]
    if not names:
        return ()
    if not frame.height:
        return tuple(Exposure(column=name, alone=0.0, best=()) for name in names)
    leaving = [frame.get_column(name) for name in frame.columns if schema.column(name).role in _UNCHANGED]
    return exposures(pl.DataFrame(leaving), names)


def refuse_undecided(
    schema: Schema, frame: pl.DataFrame, *, recipe: Path | None = None, guarantee: bool = False
) -> None:
    """Refuse a table with undecided columns. The error names all of them and how to decide.

    A recipe file describes a whole table, so a column that it does not name is undecided: next month's file may have a
    new one. In Python, unnamed columns are plain.

    A plain column of a recipe file leaves unchanged, so somebody must have decided it with a reason. With a
    ``guarantee`` no column leaves unchanged.
    """
    found = undecided(schema, frame, unnamed=recipe is not None)
    if not found:
        if recipe is not None and not guarantee:
            _refuse_unexplained(schema, frame.columns, recipe)
        return
    width = max(len(exposure.column) for exposure in found)
    lines = [f"  {exposure.column:<{width}}  {exposure if frame.height else ''}".rstrip() for exposure in found]
    what = "1 column is" if len(found) == 1 else f"{len(found)} columns are"
    new = [exposure.column for exposure in found if exposure.column not in schema.columns]
    added = f" The recipe does not name {', '.join(f'`{column}`' for column in new)}." if new else ""
    roles = dict.fromkeys(new or [found[0].column], Role.QUASI.value)
    rest = len(new) < len(found) and len(found) > 1
    if recipe is None:
        call = f"sfumato.decide(recipe, {roles!r}{', rest=' + repr('quasi') if rest else ''}, by=...)"
    else:
        words = " ".join(shlex.quote(f"{column}={role}") for column, role in roles.items())
        flags = (" --new" if new else "") + (" --rest quasi" if rest else "")
        call = f"sfumato decide {shlex.quote(str(recipe))} {words}{flags} --by YOUR-NAME"
    shown = " Rows that each makes unique if it leaves unchanged:" if frame.height else ""
    head = f"{what} undecided, so nothing is released.{added}{shown}"
    raise UndecidedColumns(
        "\n".join([head, *lines]),
        fix=f"\nDecide the role of each: {CHOICES}. For example:\n  {call}",
        columns=[exposure.to_dict() for exposure in found],
    )


def _explained(column: Column) -> bool:
    """Whether somebody has decided the column, with a reason."""
    return bool((column.decided_by or "").strip() and (column.reason or "").strip())


def _refuse_unexplained(schema: Schema, columns: Sequence[str], recipe: Path) -> None:
    """Refuse plain columns that were written by hand without name or reason."""
    names = [name for name in schema.names(Role.PLAIN) if name in columns and not _explained(schema.columns[name])]
    if not names:
        return
    words = " ".join(shlex.quote(f"{name}={Role.PLAIN.value}") for name in names)
    call = f"sfumato decide {shlex.quote(str(recipe))} {words} --by YOUR-NAME --reason WHY"
    raise UndecidedColumns(
        plain_needs_reason(names),
        fix=f"{PLAIN_FIX}\n  {call}",
        columns=[{"column": name} for name in names],
    )
