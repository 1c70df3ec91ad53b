"""Types of parameters: what a client states, else what the query says about them.

A parameter without a stated type has that of a cast around it or of the column it is compared with. Values are
decoded as their type before they are bound; a text never becomes SQL.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cache
from typing import Any

from sqlglot import exp

from sfumato.dataset import Kind, PeriodDomain, RangeDomain, ValuesDomain
from sfumato.dataset.domain import Value
from sfumato.query.plan.catalog import Catalog, PrivateTable, PublicTable
from sfumato.server.postgres.catalog_relations import relations
from sfumato.server.postgres.messages import Bind
from sfumato.server.postgres.sqlstates import SqlError
from sfumato.server.postgres.type_mapping import (
    BY_NAME,
    BY_OID,
    KIND_TYPES,
    TEXT,
    BadValue,
    PostgresType,
    array_of,
    decode,
)

_MOST = 1_000
_CAST_NAMES = {
    "smallint": "int2", "int": "int4", "integer": "int4", "bigint": "int8", "real": "float4",
    "double precision": "float8",
    "char": "bpchar", "decimal": "numeric", "boolean": "bool", "varchar": "varchar", "character varying": "varchar",
    "timestamp": "timestamp", "timestamptz": "timestamptz", "regclass": "text", "regtype": "text",
    "regnamespace": "text",
}  # fmt: skip
_SYSTEM_TYPES = {
    "sql_identifier": "name",
    "character_data": "varchar",
    "yes_or_no": "varchar",
    "cardinal_number": "int4",
}


def parameter_types(tree: Any, stated: Sequence[int], catalog: Catalog) -> tuple[PostgresType, ...]:
    """The types of ``$1``, ``$2``, ..."""
    nodes: dict[int, Any] = {}
    for node in () if tree is None else tree.find_all(exp.Parameter):
        if node.name.isdigit() and 1 <= int(node.name) <= _MOST:
            nodes.setdefault(int(node.name), node)
    count = max([len(stated), *nodes])
    if count > _MOST:
        raise SqlError("54000", f"a statement has at most {_MOST:,} parameters")
    kinds = _column_types(catalog)
    types = []
    for number in range(1, count + 1):
        oid = stated[number - 1] if number <= len(stated) else 0
        if oid not in (0, BY_NAME["unknown"].oid):
            if oid not in BY_OID:
                raise SqlError("0A000", f"parameters of the type with OID {oid} are not supported", "Cast it to text.")
            types.append(BY_OID[oid])
        else:
            types.append(_inferred(nodes.get(number), kinds))
    return tuple(types)


def _inferred(node: Any, kinds: Mapping[str, PostgresType]) -> PostgresType:
    if node is None:
        return TEXT
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Neg):
        node, parent = parent, parent.parent
    if isinstance(parent, exp.Cast):
        return _cast_type(parent.to)
    if isinstance(parent, exp.Limit | exp.Offset | exp.Fetch):
        return BY_NAME["int8"]
    listed = isinstance(parent, exp.Any | exp.All) or (
        isinstance(parent, exp.Anonymous) and parent.name.upper() == "ALL"
    )
    if listed and isinstance(parent.parent, exp.Binary):
        return array_of(_beside(parent, parent.parent, kinds))
    if isinstance(parent, exp.Predicate | exp.Binary | exp.Between | exp.In):
        return _beside(node, parent, kinds)
    return TEXT


def _beside(node: Any, parent: Any, kinds: Mapping[str, PostgresType]) -> PostgresType:
    """The type of what stands on the other side of a comparison or operation."""
    for other in parent.iter_expressions():
        if other is node:
            continue
        column = other if isinstance(other, exp.Column) else other.find(exp.Column)
        if isinstance(other, exp.Cast):
            return _cast_type(other.to)
        if column is not None and column.name.lower() in kinds:
            return kinds[column.name.lower()]
        if isinstance(other, exp.Literal):
            return TEXT if other.is_string else BY_NAME["float8"]
    return TEXT


def cast_name(written: str) -> str:
    """The name of a type as it is written in SQL; text for one that is not known."""
    plain = written.split("(", 1)[0].strip()
    name = _CAST_NAMES.get(plain, plain)
    return name if name in BY_NAME else "text"


def constants(given: Sequence[str | None], types: Sequence[PostgresType]) -> list[object]:
    """The constants of an EXECUTE as values of their types."""
    if len(given) != len(types):
        raise SqlError("42601", f"the statement has {len(types)} parameters, and {len(given)} were given")
    try:
        return [None if one is None else decode(one.encode(), kind, binary=False)
                for one, kind in zip(given, types, strict=True)]  # fmt: skip
    except BadValue as failure:
        raise SqlError("22P02", str(failure)) from None


def _cast_type(to: Any) -> PostgresType:
    name = str(to.sql(dialect="postgres")).lower().strip('"').split("(", 1)[0]
    if name.endswith("[]"):
        element = BY_NAME.get(_CAST_NAMES.get(name[:-2], name[:-2]), TEXT)
        return array_of(element)
    return BY_NAME.get(_CAST_NAMES.get(name, name), TEXT)


@cache
def _system_columns() -> Mapping[str, PostgresType]:
    found: dict[str, PostgresType] = {}
    for relation in relations().values():
        for name, kind in relation.columns.items():
            found[name] = BY_NAME.get(_SYSTEM_TYPES.get(kind, kind), TEXT)
    return found


def _column_types(catalog: Catalog) -> Mapping[str, PostgresType]:
    """Types by name of a column; a name that has two kinds in two tables is text."""
    found: dict[str, PostgresType] = {}
    tables: list[PrivateTable | PublicTable] = [*catalog.private.values(), *catalog.public.values()]
    for table in tables:
        if isinstance(table, PublicTable):
            kinds: dict[str, Kind | None] = {name: table.kind(name) for name in table.frame.columns}
        else:
            kinds = {name: column.kind for name, column in table.schema.columns.items()}
        for name, kind in kinds.items():
            one = KIND_TYPES[kind] if kind is not None else TEXT
            found[name.lower()] = one if found.get(name.lower(), one) == one else TEXT
    return {**_system_columns(), **found}


def bound_values(bind: Bind, types: Sequence[PostgresType]) -> list[object]:
    """The parameters of a Bind message as values of their types."""
    if len(bind.values) != len(types):
        raise SqlError("08P01", f"the statement has {len(types)} parameters, and {len(bind.values)} were given")
    if len(bind.formats) not in (0, 1, len(types)):
        raise SqlError("08P01", "the number of formats does not fit the number of parameters")
    values: list[object] = []
    for place, (raw, kind) in enumerate(zip(bind.values, types, strict=True)):
        format_ = bind.formats[place] if len(bind.formats) > 1 else bind.formats[0] if bind.formats else 0
        try:
            values.append(None if raw is None else decode(raw, kind, binary=format_ == 1))
        except BadValue as failure:
            raise SqlError("22P02", f"parameter ${place + 1}: {failure}") from None
    return values


def sample_values(tree: Any, types: Sequence[PostgresType], catalog: Catalog) -> list[Any]:
    """A value for each parameter with which the columns of a result can be found before any value is bound.

    Declared values are taken where a parameter is compared with a column that has some: they are always accepted.
    """
    domains: dict[str, ValuesDomain | RangeDomain | PeriodDomain] = {}
    for table in catalog.private.values():
        domains |= {name.lower(): column.domain for name, column in table.schema.columns.items() if column.domain}
    samples: dict[int, Any] = {}
    for node in () if tree is None else tree.find_all(exp.Parameter):
        parent = node.find_ancestor(exp.Binary, exp.In, exp.Between) or node.parent
        column = None if parent is None else parent.find(exp.Column)
        domain = None if column is None else domains.get(column.name.lower())
        if domain is not None and node.name.isdigit():
            samples[int(node.name)] = _some_value(domain)
    found: list[Any] = []
    for number, kind in enumerate(types, start=1):
        one = samples.get(number, _SAMPLES.get(kind.name.removeprefix("_"), "a"))
        found.append([one] if kind.name.startswith("_") else one)
    return found


def _some_value(domain: ValuesDomain | RangeDomain | PeriodDomain) -> Value:
    match domain:
        case ValuesDomain():
            return domain.values[0]
        case RangeDomain():
            return domain.low
        case PeriodDomain():
            return domain.first


_SAMPLES: dict[str, object] = {
    "int2": 1, "int4": 1, "int8": 1, "oid": 1, "float4": 1.5, "float8": 1.5, "numeric": 1, "bool": True,
    "date": date(2000, 1, 1), "timestamp": datetime(2000, 1, 1), "timestamptz": datetime(2000, 1, 1),
}  # fmt: skip
