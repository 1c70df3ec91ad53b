"""Columns of the answer to a question: names and types from its text and the public schema, before anything is run.

A count is ``bigint``, other numbers are ``double precision``: noise makes a sum of whole numbers a number like any
other. Group keys have the type of their column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from sfumato.query.plan.catalog import Catalog
from sfumato.query.plan.outputs import Key, Measured, Output, Value
from sfumato.query.plan.query import GroupKey
from sfumato.query.policy.base import Policy
from sfumato.query.results.answer import column_titles
from sfumato.query.sql.parse import parse_query
from sfumato.registry import registry
from sfumato.server.postgres.type_mapping import BY_NAME, KIND_TYPES, TEXT, PostgresType

_FAMILIES = {"number": "float8", "boolean": "bool", "date": "date", "datetime": "timestamp"}


def question_columns(sql: str, catalog: Catalog, *, policy: str) -> tuple[tuple[str, PostgresType], ...]:
    """The columns of a question that a policy answers. Refuses as asking does."""
    kind = cast("type[Policy]", registry("policy").get(policy))
    if not kind.spends_budget:
        title, column = kind.answer_column(sql, catalog)
        return ((title, KIND_TYPES[column]),)
    query = parse_query(sql, catalog)
    types = [_type(output, query.keys) for _, output in query.outputs]
    return tuple(zip(column_titles(query), types, strict=True))


def _type(output: Output, keys: Sequence[GroupKey]) -> PostgresType:
    match output:
        case Key(index=index):
            return KIND_TYPES[keys[index].scalar.kind]
        case Measured(what="count" | "distinct"):
            return BY_NAME["int8"]
        case Value(value=int() as value) if not isinstance(value, bool):
            return BY_NAME["int8"]
    return BY_NAME.get(_FAMILIES.get(output.family([key.scalar.family for key in keys]), ""), TEXT)
