"""``SHOW TABLES`` and ``DESCRIBE table``: the declared schema as an answer. It is public, so it costs nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sfumato.errors import BadParameter, QueryRefused
from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable
from sfumato.query.results.answer import Answer
from sfumato.query.results.explain import Explanation
from sfumato.query.results.postprocess import NoisyValue
from sfumato.wording import did_you_mean

_NAME = r'(?:"(?P<quoted>(?:[^"]|"")+)"|(?P<plain>[^\W\d]\w*))'
_STATEMENT = re.compile(
    rf"\s*(?:(?P<show>SHOW\s+TABLES)|(?:DESCRIBE|DESC)\s+(?:TABLE\s+)?{_NAME})\s*;?\s*", re.IGNORECASE
)
_MOST_VALUES = 8
"""A longer list of declared values is shortened."""

Rows = Sequence[tuple[str, ...]]


def schema_answer(sql: str, catalog: Catalog, *, policy: str) -> Answer | None:
    """The answer to ``SHOW TABLES`` or ``DESCRIBE table``; None for any other query."""
    if not isinstance(sql, str):
        raise BadParameter(
            f"a query is a text, not {type(sql).__name__}.", fix="Pass SQL such as SELECT COUNT(*) FROM t."
        )
    statement = _STATEMENT.fullmatch(sql)
    if statement is None:
        return None
    if statement["show"]:
        columns, rows = list_tables(catalog)
    else:
        quoted = statement["quoted"]
        columns, rows = describe_table(catalog, quoted.replace('""', '"') if quoted else statement["plain"])
    explanation = Explanation(policy=policy, notes=("Declared by the data owner; no data was read.",))
    cells = tuple(tuple(NoisyValue(value=cell) for cell in row) for row in rows)
    return Answer(columns=columns, rows=cells, explanation=explanation)


def list_tables(catalog: Catalog) -> tuple[tuple[str, ...], Rows]:
    """Every table with its unit of privacy; a public table has none."""
    rows = [(name, "private", table.schema.unit or "row") for name, table in catalog.private.items()]
    rows += [(name, "public", "") for name in catalog.public]
    return ("name", "access", "unit"), rows


def describe_table(catalog: Catalog, name: str) -> tuple[tuple[str, ...], Rows]:
    """The columns of a table: name, kind and declared values."""
    tables: dict[str, PrivateTable | PublicTable] = {**catalog.private, **catalog.public}
    table = next((table for known, table in tables.items() if known.lower() == name.lower()), None)
    if table is None:
        raise QueryRefused(f"There is no table `{name}`.", fix=did_you_mean(name, tables))
    if isinstance(table, PublicTable):
        rows = [(column, str(table.kind(column)), _listed(table.values(column))) for column in table.frame.columns]
    else:
        rows = [
            (column, str(declared.kind), _domain(table, column)) for column, declared in table.schema.columns.items()
        ]
    return ("column", "kind", "values"), rows


def _domain(table: PrivateTable, column: str) -> str:
    domain, values = table.schema.columns[column].domain, table.values[column]
    if values is not None:
        return _listed(values)
    if domain is not None:
        return str(domain)
    return "unit of privacy" if column == table.schema.unit else "not declared"


def _listed(values: tuple[object, ...]) -> str:
    more = f", ... ({len(values):,} values)" if len(values) > _MOST_VALUES else ""
    return ", ".join(map(str, values[:_MOST_VALUES])) + more
