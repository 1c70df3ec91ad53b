"""A table of people: an Arrow-backed frame, and what its file said about the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import polars as pl

from sfumato.errors import BadParameter, DuplicateColumns, EmptyTable, UnknownColumn, WrongKind
from sfumato.wording import counted, did_you_mean


@dataclass(frozen=True, kw_only=True)
class ColumnLabels:
    """What a statistics package stores beside the values of a column."""

    label: str | None = None
    """The column's title in words."""
    value_labels: Mapping[Any, str] = field(default_factory=dict)
    """Code to words, for example 1 to "urban"."""
    missing: tuple[Any, ...] = ()
    """User-defined missing codes; a pair inside is a range (low, high)."""
    display: str | None = None
    """The package's own display format, kept for the way back."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Columns and rows, never changed in place.

    The frame is a Polars frame; ``labels`` are kept for formats that have them; ``origin`` says what the caller
    handed in ("pandas", "polars", "arrow" or a format's name) so that the same comes back.
    """

    frame: pl.DataFrame
    labels: Mapping[str, ColumnLabels] = field(default_factory=dict)
    origin: str = "polars"

    def __post_init__(self) -> None:
        if self.frame.width == 0:
            raise EmptyTable("The table has no columns.", fix="Check the delimiter and the first line of the file.")
        for name, kind in self.frame.schema.items():
            if kind.is_nested() or kind in (pl.Duration, pl.Object) or isinstance(kind, pl.BaseExtension):
                raise WrongKind(
                    f"Column `{name}` holds {str(kind.base_type()).lower()} values; "
                    "a cell must be one number, text, date or truth value.",
                    fix="Convert it to a number, for example of days."
                    if kind == pl.Duration
                    else "Take it apart into columns of their own, or leave it out.",
                    column=name,
                )
            if not name.strip():
                raise BadParameter("A column has no name.", fix="Name every column.")
            # Polars reads such a name as a pattern: the wrong columns, or none, would be worked on
            if name == "*" or (name.startswith("^") and name.endswith("$")):
                raise BadParameter(
                    f"A column is called `{name}`, which reads as a pattern for other names.",
                    fix="Rename the column.",
                    column=name,
                )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @property
    def rows(self) -> int:
        return self.frame.height

    def column(self, name: str) -> pl.Series:
        """One column; an unknown name is refused with the nearest known one."""
        self.require([name])
        return self.frame.get_column(name)

    def require(self, names: list[str] | tuple[str, ...]) -> None:
        """Refuse unless the table has every one of these columns."""
        require_columns(self.frame.columns, names)

    def with_frame(self, frame: pl.DataFrame) -> Table:
        """The same labels and origin over another frame.

        Labels of columns that are gone are dropped. A column whose type changed (a code that became a group) keeps its
        title only: its value labels and missing codes speak of values that it no longer holds.
        """
        labels = {}
        for name, value in self.labels.items():
            if name in frame.columns:
                same = name in self.frame.columns and frame.schema[name] == self.frame.schema[name]
                labels[name] = value if same else ColumnLabels(label=value.label)
        return Table(frame=frame, labels=MappingProxyType(labels), origin=self.origin)

    def with_labels_in_use(self) -> Table:
        """Without the words for values that no row has, which would tell of rows that were removed."""
        labels = {}
        for name, entry in self.labels.items():
            present = set(self.frame.get_column(name).unique().to_list())
            words = {code: word for code, word in entry.value_labels.items() if code in present}
            labels[name] = replace(entry, value_labels=words)
        return replace(self, labels=MappingProxyType(labels))

    def __repr__(self) -> str:
        return f"<Table {counted(self.rows, 'row')}: {', '.join(self.columns)}>"


def refuse_duplicates(names: Sequence[str], source: str = "") -> None:
    """Refuse a header that names a column twice; ``source`` is the file of the header, as the user named it.

    Names that differ only by capitals or outer blanks count as one: engines and other readers do not tell them apart.
    """
    seen: dict[str, str] = {}
    where = f"the header of {source}" if source else "the header"
    for name in names:
        plain = name.strip().casefold()
        if plain not in seen:
            seen[plain] = name
            continue
        same = seen[plain] == name
        raise DuplicateColumns(
            f"The column name `{name}` stands twice in {where}."
            if same
            else f"The column names `{seen[plain]}` and `{name}` in {where} differ only by capitals or blanks.",
            fix="Rename one of them.",
            column=name,
        )


def refuse_no_header(columns: Sequence[str], declared: Sequence[str]) -> None:
    """Refuse a table that has none of several declared columns: what stands in its first line may be a row.

    The message does not show it.
    """
    if declared and not set(columns) & set(declared):
        raise UnknownColumn(
            f"The table has none of the {counted(len(declared), 'declared column')}, such as `{declared[0]}`.",
            fix="Check that the first line of the file names the columns. If it is a row, declare `header: false`: the"
            " columns are called column_1, column_2, ... then.",
            columns=tuple(declared),
        )


def require_columns(columns: Sequence[str], names: Sequence[str]) -> None:
    """Refuse unless every one of these names is among the columns of a table."""
    missing = [name for name in names if name not in columns]
    if missing:
        raise UnknownColumn(
            f"The table has no column `{missing[0]}`"
            + (f" (nor {len(missing) - 1} others named)." if len(missing) > 1 else "."),
            fix=did_you_mean(missing[0], columns),
            columns=tuple(missing),
        )
