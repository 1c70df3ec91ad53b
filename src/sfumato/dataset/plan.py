"""Plan: what leaves of a data set. Base of the plans of tables, models and other kinds of release.

A plan names the document of its data set, or stands in the same file as a short one:

.. code-block:: yaml

    # wards.yaml                          # or, in one file
    sfumato: 1                            sfumato: 1
    dataset: hospital.yaml                dataset: visits
    table: visits                         data: visits.csv
    statistics: [{of: bill, by: [ward]}]  unit: patient
    budget: {rho: 1/10}                   bounds: {rows: 3}
                                          columns: {ward: {domain: {values: [east, west]}}, ...}
                                          statistics: ...

Kinds, domains, the person, contribution bounds, dialect, ledger and the name of the data set come from the document. A
plan says only what leaves.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

import polars as pl
from pydantic import ConfigDict, InstanceOf, WithJsonSchema

from sfumato.data.declared import read_declared
from sfumato.data.missing import is_missing
from sfumato.data.source import Source
from sfumato.data.yaml_documents import YamlDocument, document_in, document_of, file_of, validated, yaml_text
from sfumato.dataset.column import Column, Kind, Role
from sfumato.dataset.document import SHORT_KEYS, Dataset
from sfumato.dataset.domain import RangeDomain, ValuesDomain
from sfumato.errors import BadParameter, InvalidRecipe, UndecidedColumns, UnknownColumn
from sfumato.field_docs import DocumentedModel
from sfumato.wording import did_you_mean


@dataclass(frozen=True, kw_only=True)
class PlannedTable:
    """The one table that a plan is about, as the document declares it."""

    name: str
    source: Source
    columns: Mapping[str, Column]
    unit: str | None
    """The column that says whose row it is; None where each row is a person."""
    privacy_unit: str
    """Whose privacy, as the ledger names it."""
    bound: int | None
    """How many rows of one person count."""

    def column(self, name: str) -> Column:
        """A declared and decided column that may leave in some form; any other is refused."""
        if name not in self.columns:
            raise UnknownColumn(
                f"The data set declares no column `{name}` of `{self.name}`.",
                fix=did_you_mean(name, self.columns) + " Declare it with its kind and domain.",
                column=name,
            )
        column = self.columns[name]
        if column.role is Role.UNDECIDED and name != self.unit:
            raise UndecidedColumns(
                f"Column `{name}` of `{self.name}` is undecided, so nothing is released.",
                fix="Decide its role in the document of the data set: sfumato decide DOCUMENT"
                f" {shlex.quote(f'{name}=quasi')} --table {shlex.quote(self.name)} --by YOUR-NAME",
                columns=[{"column": name}],
            )
        if not column.usable or name == self.unit:
            role = "says whose row it is" if name == self.unit else f"has the role `{column.role}`"
            raise BadParameter(f"Column `{name}` {role}, and cannot be used.", fix="Leave it out.", column=name)
        return column

    def values(self, name: str) -> ValuesDomain:
        """The declared values of a column; without them it is refused."""
        domain = self.column(name).public_domain
        if isinstance(domain, ValuesDomain):
            return domain
        raise BadParameter(f"The data set must declare the `values` of `{name}`.", column=name)

    def range(self, name: str) -> RangeDomain:
        """The declared bounds of a column of numbers; without them it is refused."""
        domain = self.column(name).public_domain
        if isinstance(domain, RangeDomain) and domain.low < domain.high:
            return domain
        raise BadParameter(f"The data set must declare `low` and `high` of `{name}`, low below high.", column=name)

    @property
    def max_rows(self) -> int:
        """How many rows of one person are used. Where a person may have several, the document must say so."""
        if self.unit is None:
            return 1
        if self.bound is None:
            raise BadParameter(
                f"A person may have many rows in `{self.name}`, and the data set does not say how many count.",
                fix="Add `bounds: {rows: 3}` to the table. Choose the number without looking at the data.",
            )
        return self.bound

    def frame(self, names: Iterable[str], *, source: Source | None = None, unit: bool = True) -> pl.DataFrame:
        """Columns as they are declared, with ``unit`` also that of the person. Nothing is found from the rows."""
        kinds: dict[str, str | None] = {name: self.column(name).read_kind for name in names}
        if unit and self.unit is not None:
            kinds[self.unit] = Kind.CATEGORY
        data = self.source if source is None else source
        table = read_declared(data.location, kinds, **data.options).frame
        blank = {
            name: series.set(is_missing(series, codes), None)
            for name, series in zip(table.columns, table, strict=True)
            if name in self.columns and (codes := self.columns[name].missing_codes)
        }
        return table.with_columns(**blank)

    def stored(self) -> pl.DataFrame:
        """The whole table with declared columns in their kinds, for plans without a guarantee."""
        frame = self.source.read().frame
        return frame.with_columns(
            column.cast(frame.get_column(name)) for name, column in self.columns.items() if name in frame.columns
        )


class DatasetPlan(DocumentedModel):
    """A plan: the data set, and what leaves."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)
    release_kind: ClassVar[str] = ""
    """The kind of release that the plan makes."""

    sfumato: Literal[1] = 1
    """Version of the document's language."""
    title: str | None = None
    """What the report is called."""
    dataset: Annotated[InstanceOf[Dataset], WithJsonSchema({"type": "string"})]
    """The document of the data set, relative to the plan; or the name of the data set in the same file."""
    table: str | None = None
    """The table that leaves; the table of people if left out."""

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a plan file; all problems in one error, with their lines."""
        document = document_in(path, kind="plan", fix="Write one as docs/dataset.md shows.")
        return cls.from_document(document, base=Path(path).parent)

    @classmethod
    def parse(cls, plan: str | Path | Mapping[str, object], *, base: Path | None = None) -> Self:
        """A plan from a file, from YAML text, or from plain data."""
        file = file_of(plan)
        return cls.from_document(document_of(plan, source="plan"), base=base) if file is None else cls.load(file)

    @classmethod
    def from_document(cls, document: YamlDocument, *, base: Path | None = None) -> Self:
        """The plan in a parsed document, with the data set that it names or that stands beside it."""
        plain = document.value
        if not isinstance(plain, dict):
            problem = document.problem((), "a plan is a mapping that starts with `sfumato: 1`")
            raise InvalidRecipe([problem], source=document.source)
        own = {name for name in cls.model_fields if name != "dataset"}
        named = Dataset.named_file(plain, base=base) is not None
        beside = ("dataset",) if named else (*Dataset.model_fields, *SHORT_KEYS)
        unknown = [key for key in plain if key not in own and key not in beside]
        if unknown:
            known = (*own, *beside)
            raise InvalidRecipe(
                [document.problem((key,), f"unknown field. {did_you_mean(str(key), known)}") for key in unknown],
                source=document.source,
            )
        rest = {key: value for key, value in plain.items() if key not in own or key == "sfumato"}
        dataset = Dataset.from_document(replace(document, value=rest), base=base)
        values = {key: value for key, value in plain.items() if key in own}
        return validated(cls, replace(document, value={**values, "dataset": dataset}), base=base)

    @property
    def people(self) -> PlannedTable:
        """The table that the plan is about."""
        dataset = self.dataset
        if dataset.person is None:
            raise BadParameter(
                f"The data set `{dataset.dataset}` does not say whose privacy is kept.",
                fix="Add `person` (`unit` in the short form): `row`, or the column with the person's id.",
            )
        name = dataset.table_name(self.table)
        declared, unit = dataset.tables[name], dataset.unit(name)
        bound = declared.bounds.rows or (1 if name == dataset.person else None)
        return PlannedTable(
            name=name, source=declared.data, columns=declared.columns, unit=unit, bound=bound,
            privacy_unit=dataset.privacy_unit,
        )  # fmt: skip

    @property
    def account(self) -> str | None:
        """The name that budgets are kept under, where the data set has a ledger."""
        return None if self.dataset.ledger is None else self.dataset.dataset

    @property
    def register(self) -> tuple[str, str] | None:
        """The ledger, and the data set in it, in whose register the release is entered."""
        return None if self.dataset.ledger is None else (self.dataset.ledger, self.dataset.dataset)

    def public(self) -> dict[str, object]:
        """The plan as plain data, with the name of the data set instead of its document."""
        plan: dict[str, object] = self.model_dump(mode="json", exclude={"dataset"}, exclude_none=True)
        return {**plan, "dataset": self.dataset.dataset}


def plan_text(plan: str | Path | Mapping[str, object]) -> str:
    """A plan as it was written; plain data as YAML."""
    if isinstance(plan, Mapping):
        return yaml_text(plan)
    file = file_of(plan)
    return str(plan) if file is None else file.read_text(encoding="utf-8-sig")
