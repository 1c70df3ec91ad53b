"""The file an owner writes before queries can be asked: tables, columns, bounds, keys, and what one person is.

.. code-block:: yaml

    sfumato: 1
    dataset: hospital                 # the name budgets are kept under
    ledger: ledger.db                 # SQLite file or postgresql:// address
    policy: differential-privacy      # or audit, consistent-sample, rounding, ...
    tables:
      visits:
        data: visits.parquet
        unit: person                  # the column that says whose row it is, or `row`
        rows: 3                       # rows of one person that count within a group
        groups: 2                     # groups in which one person counts
        columns:
          person: {kind: integer}
          ward:   {kind: category, domain: {values: [east, west]}}
          bill:   {kind: number, domain: {low: 0, high: 2000}}
          day:    {kind: date, domain: {first: 2020-01-01, last: 2024-12-31}}
    public:
      wards: {data: wards.csv, key: [ward]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from sfumato.data.table import Table
from sfumato.data.yaml_documents import parse_yaml, read_text_file
from sfumato.dataset import Column, Kind, Role, Schema
from sfumato.engines.choice import is_address
from sfumato.engines.engine import Engine
from sfumato.errors import FileMissing, InvalidRecipe, UnknownColumn
from sfumato.field_docs import DocumentedModel
from sfumato.ledger.ledger import Ledger
from sfumato.params import plain_message
from sfumato.query.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.policy.choice import ChosenPolicy
from sfumato.query.session import Session
from sfumato.wording import did_you_mean

__all__ = ["Metadata", "load", "parse_metadata", "propose"]


class _Declared(DocumentedModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TableMetadata(_Declared):
    """One private table."""

    data: str
    """Parquet or CSV file, relative to this file, or a table as ``postgresql://user@host/base#schema.table``."""
    unit: str
    """The column that says whose row it is, or ``row`` if each row is a person."""
    rows: Annotated[int, Field(ge=1)] | None = None
    """How many rows of one unit count within one group."""
    groups: Annotated[int, Field(ge=1)] | None = None
    """In how many groups one unit counts."""
    typical: Annotated[int, Field(ge=1)] | None = None
    """In how many groups a unit usually is; helps to choose how contributions are bounded."""
    columns: dict[str, Column]
    """What may be asked about; columns left out cannot be named."""

    @field_validator("unit", mode="before")
    @classmethod
    def _said(cls, value: Any) -> Any:
        if value is None:
            raise ValueError("`unit` is required: `row`, or the column that identifies a person")
        return value

    @field_validator("columns", mode="before")
    @classmethod
    def _plain_role(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            str(name): {"role": "plain", **item} if isinstance(item, dict) else item for name, item in value.items()
        }


class PublicMetadata(_Declared):
    """One public table."""

    data: str
    """CSV or Parquet file, relative to this file. Anybody may see all of it."""
    key: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns it is joined on; unique together."""


class Metadata(_Declared):
    """The whole file."""

    sfumato: Literal[1]
    """Version of the file's language."""
    dataset: Annotated[str, Field(min_length=1)]
    """The name budgets are kept under."""
    ledger: str
    """SQLite file, relative to this file, or a postgresql:// address."""
    version: str = ""
    """A name for the present state of tables in a database. Until it changes, repeated queries are answered as
    before, for free; files tell by themselves that they changed."""
    least: Annotated[float, Field(gt=0)] | None = None
    """The smallest epsilon of one query. Without it, queries at almost no cost tell their running time almost free."""
    repeats: Literal["free", "charged"] = "free"
    """Whether a query that another analyst asked before is free. `charged`: it costs the analyst, and not the data set
    again, so that nobody learns from the cost what others asked."""
    policy: ChosenPolicy = None
    """How queries are answered: by differential privacy, or by another policy with its parameters."""
    tables: Annotated[dict[str, TableMetadata], Field(min_length=1)]
    """The private tables."""
    public: dict[str, PublicMetadata] = {}
    """The public tables."""

    def session(
        self,
        *,
        base: Path,
        analyst: str,
        ledger: Ledger | None = None,
        tables: Mapping[str, Any] | None = None,
        engine: Engine | str | None = None,
        pace: float | None = None,
    ) -> Session:
        """Open the tables for one analyst, under everything that this file says.

        Every door opens its sessions here: command line, Python, server, app and parties. ``ledger`` is charged
        instead of the file's own, and ``tables`` are read instead of the data that it names.
        """
        return Session(
            self.catalog(base),
            {**self.sources(base), **(tables or {})},
            ledger=Ledger.open(self.ledger_place(base)) if ledger is None else ledger,
            analyst=analyst,
            policy=self.policy,
            engine=engine,
            pace=pace,
            version=self.version,
            repeats=self.repeats,
            least=self.least,
        )

    def sources(self, base: Path) -> dict[str, str | Path]:
        """Where the data of each private table is."""
        return {name: t.data if is_address(t.data) else base / t.data for name, t in self.tables.items()}

    def catalog(self, base: Path) -> Catalog:
        """What analysts may know."""
        private = {
            name: PrivateTable(
                name=name,
                schema=Schema(columns=table.columns, unit=None if table.unit == "row" else table.unit),
                rows=table.rows,
                groups=table.groups,
                typical=table.typical,
            )
            for name, table in self.tables.items()
        }
        public = {
            name: PublicTable(name=name, frame=_frame(base / table.data), key=table.key)
            for name, table in self.public.items()
        }
        return Catalog(dataset=self.dataset, private=private, public=public)

    @field_validator("tables", mode="after")
    @classmethod
    def _fits_policy(cls, tables: dict[str, TableMetadata], info: ValidationInfo) -> dict[str, TableMetadata]:
        policy = info.data.get("policy")
        if policy is not None:
            if len(tables) != 1 or any(t.unit != "row" or is_address(t.data) for t in tables.values()):
                raise ValueError(f"policy {policy.part_name()} answers about one table in a file, with `unit: row`")
            columns = [column for table in tables.values() for column in table.columns.values()]
            if policy.needs_sensitive and not any(column.role is Role.SENSITIVE for column in columns):
                raise ValueError(f"policy {policy.part_name()} needs a column with `role: sensitive`")
        return tables

    def ledger_place(self, base: Path) -> str | Path:
        """Where the ledger is."""
        return self.ledger if "://" in self.ledger else base / self.ledger


def load(path: Path) -> Metadata:
    """Read and check the file; every problem is told with its line."""
    text = read_text_file(path, kind="metadata file", fix="`sfumato init FILE --query` writes one.")
    return parse_metadata(text, source=path.name, base=path.parent)


def parse_metadata(text: str, *, source: str, base: Path) -> Metadata:
    """Check the text of a metadata file; ``base`` is the folder that paths in it start from."""
    document = parse_yaml(text, source=source)
    try:
        return Metadata.model_validate(document.value, context={"base": base})
    except ValidationError as failure:
        problems = [
            document.problem(e["loc"], plain_message(e, Metadata if len(e["loc"]) == 1 else None))
            for e in failure.errors()
        ]
        raise InvalidRecipe(problems, source=source) from None


def _frame(path: Path) -> Any:
    import polars as pl

    if not path.is_file():
        raise FileMissing(f"There is no file `{path}`.", fix="Check the path in the metadata.")
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)


def propose(
    table: Table,
    *,
    data: str,
    dataset: str,
    unit: str | None = None,
    sensitive: Sequence[str] = (),
    audit: int | None = None,
) -> str:
    """A first draft of the file for a table, to be reviewed by its owner before anybody asks.

    Kinds are read from the table. Bounds and values are *not*: a bound taken from the data gives its largest value
    away. They are left as queries for the owner, who knows what is possible without looking. Nor is it guessed whom
    a row is about: without ``unit`` the file waits for its owner to say so, and nothing is answered until then. With
    ``audit``, an auditor answers exactly or refuses: everyone keeps that many values of the ``sensitive`` columns.
    """
    table.require(list(sensitive))
    if unit is not None and unit != "row" and unit not in table.columns:
        raise UnknownColumn(f"There is no column `{unit}`.", fix=did_you_mean(unit, ["row", *table.columns]))
    said, aside = "" if unit is None else _word(unit), "# " if unit in (None, "row") else ""
    lines = [
        "sfumato: 1",
        f"dataset: {_word(dataset)}",
        f"ledger: {_word(f'{dataset}-ledger.db')}",
        *([f"policy: {{audit: {{k: {audit}}}}}"] if audit is not None else []),
        "tables:",
        f"  {_word(dataset)}:",
        f"    data: {_word(data)}",
        f"    unit: {said:<22}# `row` if each row is another person, or the column that tells",
        f"    {aside}rows:     # where a column tells: rows of one person that count within one group",
        f"    {aside}groups:   # and groups in which one person counts",
        "    columns:                    # delete what nobody may ask about",
    ]
    for name in table.columns:
        kind = Kind.of(table.column(name).dtype)
        match kind:
            case Kind.INTEGER | Kind.NUMBER:
                step = ", step: ..." if audit is not None and name in sensitive and kind is Kind.NUMBER else ""
                hint = f"  # add domain: {{low: ..., high: ...{step}}} from what is possible, not from the data"
            case Kind.CATEGORY:
                hint = "  # add domain: {values: [...]} if it is to be grouped by"
            case Kind.DATE | Kind.DATETIME:
                hint = "  # add domain: {first: 2020-01-01, last: 2024-12-31} from what is possible"
            case _:
                hint = ""
        role = ", role: sensitive" if name in sensitive else ""
        lines.append(f"      {_word(name)}: {{kind: {kind}{role}}}{hint}")
    return "\n".join(lines) + "\n"


def _word(text: str) -> str:
    """A name as YAML reads it back, whatever it is."""
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./-]*", text)
    special = text.lower() in ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
    return text if plain and not special else json.dumps(text, ensure_ascii=False)
