"""Generalization hierarchies of a document: bind one to the values of its column, check all against the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sfumato.data import read
from sfumato.dataset import Data, Schema
from sfumato.dataset.document import Dataset
from sfumato.dataset.hierarchy import BoundHierarchy
from sfumato.errors import FileMissing, SfumatoError, UnknownColumn
from sfumato.recipe import Recipe
from sfumato.wording import did_you_mean


@dataclass(frozen=True, kw_only=True)
class HierarchyCheck:
    """Whether the hierarchy of a column contains all of its values."""

    column: str
    state: Literal["complete", "incomplete", "refused"]
    missing: int | None = 0
    """Number of values without a line in the hierarchy; None if it cannot be bound to the column."""
    values: tuple[str, ...] = ()
    """Those values. For the owner only."""
    reason: str = ""

    def to_dict(self, *, show_values: bool = False) -> dict[str, object]:
        """One entry of what ``sfumato hierarchy check --json`` prints; values only if asked for."""
        shown: dict[str, object] = {"column": self.column, "state": self.state, "missing": self.missing}
        if show_values and self.values:
            shown["values"] = list(self.values)
        return {**shown, "reason": self.reason} if self.reason else shown


def hierarchy_of(
    document: str | Path, column: str, *, table: str | None = None, data: str | Path | None = None
) -> BoundHierarchy:
    """The hierarchy of a column, bound to the values that it has.

    Parameters
    ----------
    document
        Data set document, recipe or plan.
    table
        The table of a data set document with several tables; the table of people if left out.
    data
        File or database URL to use instead of the document's own data.
    """
    return _data(document, table, data, only=column).bound_hierarchy(column)


def check_hierarchies(
    document: str | Path, *, table: str | None = None, data: str | Path | None = None
) -> tuple[HierarchyCheck, ...]:
    """Whether the declared hierarchies contain all values of their columns. Parameters: :func:`hierarchy_of`."""
    source = _data(document, table, data)
    return tuple(_checked(source, name) for name, column in source.schema.columns.items() if column.hierarchy)


def _checked(source: Data, name: str) -> HierarchyCheck:
    try:
        gaps = source.bound_hierarchy(name).gaps(source.table.column(name))
    except SfumatoError as refusal:
        return HierarchyCheck(column=name, state="refused", missing=None, reason=str(refusal))
    values = tuple(str(value) for value in gaps.sort())
    return HierarchyCheck(column=name, state="incomplete" if values else "complete", missing=len(values), values=values)


def _data(document: str | Path, table: str | None, data: str | Path | None, *, only: str | None = None) -> Data:
    """The rows of a document with its columns, or with ``only`` one of them."""
    recipe = Recipe.load(document) if table is None else None
    source, schema = (recipe.source, recipe.schema) if recipe else Dataset.load(document).released_table(table)
    columns = dict(schema.columns)
    if only is not None and only not in columns:
        raise UnknownColumn(f"The recipe has no column `{only}`.", fix=did_you_mean(only, columns), columns=(only,))
    if data is None and source is None:
        raise FileMissing(
            "The recipe has no `data:`.", fix="Add it, or pass the file as the option `data`.", option="data"
        )
    rows = source.read() if data is None and source is not None else read(data)
    return Data.of(rows, Schema(columns=columns if only is None else {only: columns[only]}))
