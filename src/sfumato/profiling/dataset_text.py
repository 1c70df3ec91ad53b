"""Several tables as one data set document: keys and links that are proposed from the values, for the owner to confirm.

A key is a column whose values are all there and all different. A link is a column whose values are all keys of another
table. Both hold for the rows of today only, and a proposal says so; the owner knows whether they hold by design.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from sfumato.data.source import Source
from sfumato.data.yaml_documents import yaml_flow, yaml_scalar
from sfumato.dataset import Kind
from sfumato.profiling.proposal import Proposal
from sfumato.profiling.recipe_text import DOMAINS, column_lines, comment

_KEY_KINDS = (Kind.INTEGER, Kind.CATEGORY)
_FEW = 3
"""A link needs more distinct values: two or three are codes that happen to be among the keys."""


@dataclass(frozen=True, kw_only=True)
class ProfiledTable:
    """A table of a data set as ``init`` sees it."""

    source: Source
    frame: pl.DataFrame = field(repr=False)
    proposal: Proposal


def proposed_keys(tables: Mapping[str, ProfiledTable]) -> dict[str, str]:
    """The key of each table that has one: the first whole number or text without gaps and repetitions."""
    keys = {}
    for name, table in tables.items():
        for column in table.frame:
            if Kind.of(column.dtype) in _KEY_KINDS and column.null_count() == 0 and column.n_unique() == len(column):
                keys[name] = column.name
                break
    return keys


def proposed_links(tables: Mapping[str, ProfiledTable], keys: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Columns of each table whose values are all keys of another table, and that table.

    Numbers from 1 on are keys of every table that is large enough: a link by values alone must also repeat a word of
    the key's or the other table's name (``patient`` or ``patient_id`` for ``patients.id``).
    """
    links: dict[str, dict[str, str]] = {}
    for name, table in tables.items():
        for column in table.frame:
            for other, key in keys.items():
                known = tables[other].frame.get_column(key)
                if (name, column.name) == (other, key) or Kind.of(column.dtype) != Kind.of(known.dtype):
                    continue
                values = column.drop_nulls().unique()
                if len(values) > _FEW and _alike(column.name, other, key) and values.is_in(known.implode()).all():
                    links.setdefault(name, {})[column.name] = other
                    break
    return links


def _alike(column: str, table: str, key: str) -> bool:
    """Whether a column is called like a table or its key."""
    plain, singular = column.lower(), table.lower().removesuffix("s")
    return singular in plain or (plain == key.lower() and plain not in ("id", "key", "number", "nr", "no"))


def proposed_person(keys: Mapping[str, str], links: Mapping[str, Mapping[str, str]]) -> str | None:
    """The table that most others link to and that links to none; None if no table is linked to."""
    linked = [other for each in links.values() for other in each.values()]
    roots = [name for name in keys if name in linked and name not in links]
    return max(roots, key=linked.count, default=None)


def dataset_text(name: str, tables: Mapping[str, ProfiledTable], *, person: str | None = None) -> str:
    """The document as YAML with comments. Without ``person`` it is proposed from the links."""
    keys = proposed_keys(tables)
    links = proposed_links(tables, keys)
    person = person or proposed_person(keys, links)
    linked = {other for each in links.values() for other in each.values()}
    return "\n".join(
        [
            *comment(
                f"A proposal for {len(tables)} tables. Review it: keys, links and roles hold for the rows of today."
                " Roles: identifier, quasi, sensitive, weight, household, plain, drop, undecided."
            ),
            "sfumato: 1",
            f"dataset: {yaml_scalar(name)}",
            *comment(
                "Whose privacy: the table whose rows are people, or the column that identifies them in all tables."
            ),
            f"person: {yaml_scalar(person)}" if person is not None else "# person: ",
            f"ledger: {yaml_scalar(f'{name}-ledger.db')}",
            *comment(DOMAINS),
            "tables:",
            *(
                line
                for each, table in tables.items()
                for line in _table(each, table, keys.get(each) if each in linked else None, links.get(each, {}))
            ),
            "",
        ]
    )


def _table(name: str, table: ProfiledTable, key: str | None, links: Mapping[str, str]) -> Iterator[str]:
    yield f"  {yaml_scalar(name)}:"
    yield f"    data: {yaml_flow(table.source.to_dict())}"
    if key is not None:
        yield f"    key: {yaml_scalar(key)}      # unique in every row of today"
    if links:
        yield f"    links: {yaml_flow(links)}      # every value is a key there"
        yield "    # bounds: {rows: , groups: }      # for queries: rows of a person per group, and groups of a person"
    yield "    columns:"
    for column in table.proposal.columns:
        yield from (f"    {line}" for line in column_lines(column))
