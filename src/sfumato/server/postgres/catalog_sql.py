"""Rewrite a query on ``pg_catalog``, ``information_schema``, ``sfumato`` or public tables for the catalog engine.

The query is parsed as PostgreSQL and written as DuckDB. Tables are replaced by those of the catalog engine, casts to
``regclass`` and its kin by lookups, and functions are checked against a list. Parameters become literal nodes of
their type. What is left over is refused: nothing that a client writes reaches the engine as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from sqlglot import exp

from sfumato.data.sql_quoting import quoted_text
from sfumato.errors import QueryRefused
from sfumato.server.postgres.catalog_functions import ALLOWED, TABLE_FUNCTIONS
from sfumato.server.postgres.catalog_relations import relations, user_relations
from sfumato.server.postgres.type_mapping import BY_NAME, BadValue, decode
from sfumato.server.postgres.views import VIEWS
from sfumato.wording import did_you_mean

_SAME = {"regclass": "regclass_name", "regtype": "regtype_name", "regnamespace": "regnamespace_name"}
_LOOKUPS = {"regclass": "to_regclass", "regtype": "to_regtype", "regnamespace": "to_regnamespace"}
_OPERATORS: dict[str, Callable[..., object]] = {
    "~": lambda a, b: exp.RegexpLike(this=a, expression=b),
    "!~": lambda a, b: exp.Not(this=exp.RegexpLike(this=a, expression=b)),
    "~*": lambda a, b: exp.RegexpILike(this=a, expression=b),
    "=": lambda a, b: exp.EQ(this=a, expression=b),
    "<>": lambda a, b: exp.NEQ(this=a, expression=b),
    "~~": lambda a, b: exp.Like(this=a, expression=b),
}
_USER_TABLES = frozenset(user_relations(user="", datasets=(), settings={}))
_VIEW_NAMES = tuple(view.name for view in VIEWS)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a query may ask about its own connection."""

    user: str
    database: str
    version: str
    settings: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class CatalogQuery:
    """A query for the catalog engine."""

    sql: str
    needs: frozenset[str] = field(default_factory=frozenset)
    """Tables that depend on who asks: names of catalogs, and of views of sfumato as ``sfumato_budget``."""


def literal_node(value: object) -> Any:
    """A value as a node of a syntax tree."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int() | float() | Decimal():
            text = format(Decimal(repr(value)) if isinstance(value, float) else Decimal(value), "f")
            number = exp.Literal.number(text.lstrip("-"))
            return exp.Paren(this=exp.Neg(this=number)) if text.startswith("-") else number
        case list():
            return exp.Array(expressions=[literal_node(item) for item in value])
        case datetime():
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), "TIMESTAMP")
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), "DATE")
        case _:
            return exp.Literal.string(str(value))


def rewrite(
    tree: object, *, tables: Mapping[str, str], identity: Identity, parameters: Sequence[object]
) -> CatalogQuery:
    """The query as the catalog engine runs it; a refusal says what is not available.

    ``tables`` are those of the data set that it may name, with the engine's schemas that they are in.
    """
    if not isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery | exp.Values):
        raise QueryRefused("Only SELECT is answered about the catalogs.")
    if tree.find(exp.DDL, exp.DML, exp.Command, exp.Into) is not None:
        raise QueryRefused("Nothing can be written.")
    _fold_names(tree)
    _name_outputs(tree)
    rewriter = _Rewriter(tables=tables, identity=identity, parameters=parameters)
    rewriter.named = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    rewriter.aliases = {one.alias_or_name: one.name for one in tree.find_all(exp.Table)}
    for node in reversed(list(tree.walk())):  # children before their parents
        changed = rewriter.node(node)
        if changed is not node:
            node.replace(changed)
    _check_functions(tree)
    return CatalogQuery(sql=tree.sql(dialect="duckdb"), needs=frozenset(rewriter.needs))


def _fold_names(tree: Any) -> None:
    """Names without quotation marks are written in lower case, as PostgreSQL reads them."""
    for name in tree.find_all(exp.Identifier):
        if not name.quoted:
            name.set("this", name.name.lower())


def _name_outputs(tree: Any) -> None:
    """Give unnamed columns the names that PostgreSQL gives them."""
    select = tree
    while not isinstance(select, exp.Select):
        if not isinstance(select.this, exp.Expression):
            return
        select = select.this
    for item in list(select.expressions):
        if not isinstance(item, exp.Alias | exp.Star) and not item.is_star:
            item.replace(exp.alias_(item.copy(), _output_name(item), quoted=True))


def _output_name(node: object) -> str:
    match node:
        case exp.Cast() | exp.Paren() | exp.Collate():
            return _output_name(node.this)
        case exp.Column() | exp.Dot():
            return str(node.name)
        case exp.Anonymous():
            return str(node.name).lower()
        case exp.CurrentVersion():
            return "version"
        case exp.And() | exp.Or() | exp.Not():
            return "?column?"
        case exp.Subquery():
            select = node.find(exp.Select)
            return (
                "?column?"
                if select is None or not select.expressions
                else _output_name(select.expressions[0].unalias())
            )
        case exp.Func():
            return str(node.sql_name()).lower()
        case _:
            return "?column?"


@dataclass
class _Rewriter:
    tables: Mapping[str, str]
    identity: Identity
    parameters: Sequence[Any]
    named: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)
    """Tables by the names that they have in the query."""
    needs: set[str] = field(default_factory=set)

    def node(self, node: object) -> Any:
        match node:
            case exp.Table() if isinstance(node.this, exp.Identifier):
                return self._table(node)
            case exp.Table() if isinstance(node.this, exp.Func) and node.alias and not node.args["alias"].columns:
                return _function_rows(node)
            case exp.Column():
                return self._column(node)
            case exp.Bracket() if isinstance(node.this, exp.Column) and node.this.name in _vectors():
                return _counted_from_one(node)
            case exp.EQ() | exp.NEQ() if isinstance(node.this, exp.Column) and node.this.name in _functions():
                return _compared_name(node)
            case exp.Parameter():
                return self._parameter(node)
            case exp.Operator():
                return self._operator(node)
            case exp.Collate():
                return node.this
            case exp.Cast():
                return self._cast(node)
            case exp.CurrentUser() | exp.SessionUser():
                return exp.Literal.string(self.identity.user)
            case exp.CurrentDatabase() | exp.CurrentCatalog():
                return exp.Literal.string(self.identity.database)
            case exp.CurrentSchema():
                return exp.Literal.string("public")
            case exp.CurrentSchemas():
                implicit = isinstance(node.this, exp.Boolean) and node.this.this
                return literal_node(["pg_catalog", "public"] if implicit else ["public"])
            case exp.CurrentVersion():
                return exp.Literal.string(self.identity.version)
            case exp.CurrentTimestamp():
                return _moment("TIMESTAMPTZ")
            case exp.Localtimestamp():
                return _moment("TIMESTAMP")
            case exp.CurrentDate():
                return _moment("DATE")
            case exp.Anonymous():
                return self._function(node)
            case exp.Format() if isinstance(node.this, exp.Literal):
                pattern = exp.Literal.string(node.this.name.replace("%I", "%s"))
                return exp.Anonymous(this="printf", expressions=[pattern, *node.expressions])
            case exp.Literal() if node.is_string and node.name.startswith("{") and node.name.endswith("}"):
                compared = isinstance(node.parent, exp.Paren) and isinstance(node.parent.parent, exp.Any | exp.All)
                return literal_node(_items(node.name)) if compared else exp.Literal.string(_list_text(node.name))
        return node

    def _table(self, node: exp.Table) -> Any:
        name, schema = node.name, node.db
        if not schema and name in self.named:
            return node
        if node.catalog and node.catalog != self.identity.database:
            raise QueryRefused(f"There is no database `{node.catalog}` here.", fix="Connect to it.")
        if schema in ("", "pg_catalog") and ("pg_catalog", name) in relations():
            if name in _USER_TABLES:
                self.needs.add(name)
            return self._placed(node, "temp" if name in _USER_TABLES else "cat", name)
        if schema == "information_schema" and (schema, name) in relations():
            return self._placed(node, "inf", name)
        if schema == "sfumato":
            if name not in _VIEW_NAMES:
                raise QueryRefused(f"There is no view `sfumato.{name}`.", fix=did_you_mean(name, _VIEW_NAMES))
            self.needs.add(f"sfumato_{name}")
            return self._placed(node, "temp", f"sfumato_{name}")
        if schema in ("", "public"):
            known = next((table for table in self.tables if table.lower() == name.lower()), None)
            if known is not None:
                return self._placed(node, self.tables[known], known)
        raise QueryRefused(f"There is no table `{f'{schema}.' if schema else ''}{name}` here.")

    def _placed(self, node: exp.Table, schema: str, name: str) -> object:
        placed = node.copy()
        placed.set("this", exp.to_identifier(name, quoted=True))
        placed.set("db", exp.to_identifier(schema, quoted=True))
        placed.set("catalog", None)
        if not placed.alias:
            placed.set("alias", exp.TableAlias(this=exp.to_identifier(node.name, quoted=True)))
        return placed

    def _column(self, node: exp.Column) -> Any:
        """A column without schema and database: tables are named by their alias."""
        if not node.table and node.name == "user" and not node.this.quoted:
            return exp.Literal.string(self.identity.user)
        if node.name == "tableoid" and node.table in self.aliases:
            return exp.Anonymous(this="to_regclass", expressions=[exp.Literal.string(self.aliases[node.table])])
        if node.args.get("db"):
            plain = node.copy()
            plain.set("db", None)
            plain.set("catalog", None)
            return plain
        return node

    def _parameter(self, node: exp.Parameter) -> object:
        number = int(node.name) if node.name.isdigit() else 0
        if not 1 <= number <= len(self.parameters):
            raise QueryRefused(f"There is no parameter ${node.name}.")
        return literal_node(self.parameters[number - 1])

    def _operator(self, node: exp.Operator) -> object:
        made = _OPERATORS.get(str(node.args["operator"]).strip())
        if made is None:
            raise QueryRefused(f"OPERATOR({node.args['operator']}) is not available.")
        return made(node.this, node.expression)

    def _function(self, node: exp.Anonymous) -> object:
        name = node.name.lower()
        if name == "set_config":
            raise QueryRefused("set_config takes texts and stands alone in a SELECT without tables.")
        if name == "current_setting" and node.expressions:
            asked = node.expressions[0]
            setting = self.identity.settings.get(asked.name.lower()) if isinstance(asked, exp.Literal) else None
            return exp.cast(literal_node(setting), "VARCHAR")
        if name in _MOMENTS:
            return _moment("TIMESTAMPTZ")
        if name == "json_build_object":
            return exp.Anonymous(this="json_object", expressions=node.expressions)
        return node

    def _cast(self, node: exp.Cast) -> object:
        name = str(node.to.sql(dialect="postgres")).lower().strip('"')
        inner = node.this
        if name in _LOOKUPS:
            named = isinstance(inner, exp.Column | exp.Cast | exp.Paren | exp.Subquery)  # an identifier; else a text
            lookup = not named and not (isinstance(inner, exp.Literal) and not inner.is_string)
            outer = node.parent
            if not lookup and isinstance(outer, exp.Cast) and str(outer.to.sql(dialect="postgres")).lower() == "oid":
                return inner
            return exp.Anonymous(this=_LOOKUPS[name] if lookup else _SAME[name], expressions=[inner])
        if name in ("regproc", "regprocedure", "regoper", "regoperator", "regrole"):
            return exp.Anonymous(this="regproc_name", expressions=[inner])
        if name == "oid" and isinstance(inner, exp.Anonymous) and inner.name == "regproc_name":
            raise QueryRefused("There is no such function: pg_proc is empty.")
        if name in ("oid", "xid"):
            return exp.cast(inner, "UINTEGER", dialect="duckdb")
        if name in ("oid[]", "int2vector", "oidvector"):
            return exp.cast(inner, "UINTEGER[]" if name.startswith("oid") else "SMALLINT[]", dialect="duckdb")
        if name in ("name", "char", "char(1)", "bpchar", "pg_node_tree", "json", "jsonb", "inet", "unknown"):
            return exp.cast(inner, "VARCHAR")
        if name in ("name[]", '"char"[]', 'char"[]', "aclitem[]"):
            return exp.cast(inner, "VARCHAR[]", dialect="duckdb")
        return node


_MOMENTS = ("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp")


def _moment(kind: str) -> object:
    """The present time, in UTC, as a constant."""
    text = datetime.now(UTC).replace(tzinfo=None).isoformat(sep=" ")
    stamped = exp.Literal.string(f"{text}+00" if kind == "TIMESTAMPTZ" else text)
    return exp.cast(exp.cast(stamped, "TIMESTAMP") if kind == "DATE" else stamped, kind)


def _constant(node: object, parameters: Sequence[object]) -> Any:
    """The value of a literal or a parameter; None for anything else."""
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, exp.Parameter) and inner.name.isdigit() and 0 < int(inner.name) <= len(parameters):
        return parameters[int(inner.name) - 1]
    return inner.this if isinstance(inner, exp.Literal | exp.Boolean) else None


def setting_changes(tree: Any, parameters: Sequence[Any]) -> list[tuple[Any, str, str, bool]]:
    """Calls of ``set_config`` in a SELECT without tables: node, setting, value, and whether it is local."""
    calls = [one for one in tree.find_all(exp.Anonymous) if one.name.lower() == "set_config"]
    if not calls or tree.find(exp.Table) is not None:
        return []
    found = []
    for call in calls:
        given = [_constant(one, parameters) for one in call.expressions]
        if len(given) != 3 or not isinstance(given[0], str) or not isinstance(given[1], str):
            raise QueryRefused("set_config takes the name of a setting, its value, and true or false.")
        found.append((call, given[0], given[1], given[2] in (True, "true", "t")))
    return found


def _list_text(text: str) -> str:
    """An array literal of PostgreSQL as DuckDB writes lists; any other text in braces as it is.

    >>> _list_text('{a,"null"}')
    "[a, 'null']"
    """
    items = _items(text)
    if not isinstance(items, list):
        return text
    shown = (
        "NULL" if item is None else item if item.isalnum() and item != "null" else quoted_text(item) for item in items
    )
    return f"[{', '.join(shown)}]"


def _items(text: str) -> Any:
    """The items of an array literal; any other text as it is."""
    try:
        return decode(text.encode(), BY_NAME["_text"], binary=False)
    except (BadValue, IndexError):
        return text


@cache
def _vectors() -> frozenset[str]:
    """Columns of the old kind of array, whose items are counted from zero."""
    return frozenset(
        column
        for relation in relations().values()
        for column, kind in relation.columns.items()
        if kind in ("int2vector", "oidvector")
    )


@cache
def _functions() -> frozenset[str]:
    """Columns that name a function; here they are texts."""
    return frozenset(
        column for relation in relations().values() for column, kind in relation.columns.items() if kind == "regproc"
    )


def _compared_name(node: exp.EQ | exp.NEQ) -> object:
    """A comparison of a function with 0, which stands for none, as one with the text of it."""
    if not (isinstance(node.expression, exp.Literal) and node.expression.name == "0"):
        return node
    compared = node.copy()
    compared.set("expression", exp.Literal.string("-"))
    return compared


def _counted_from_one(node: exp.Bracket) -> object:
    counted = node.copy()
    counted.set("expressions", [exp.Paren(this=one.copy()) + 1 for one in node.expressions])
    return counted


def _function_rows(node: exp.Table) -> object:
    """A function in FROM: its rows, or its value, are the one column, which has the name of the alias."""
    name = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
    if name in TABLE_FUNCTIONS:
        return node
    alias = node.args["alias"].this
    if isinstance(node.this, exp.ExplodingGenerateSeries):
        named = node.copy()
        named.set("alias", exp.TableAlias(this=alias.copy(), columns=[alias.copy()]))
        return named
    return exp.Subquery(
        this=exp.Select(expressions=[exp.Alias(this=node.this.copy(), alias=alias.copy())]),
        alias=exp.TableAlias(this=alias.copy()),
    )


def _check_functions(tree: Any) -> None:
    for call in tree.find_all(exp.Func):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else str(call.sql_name()).lower()
        if name not in ALLOWED:
            raise QueryRefused(f"The function `{name}` is not available in queries on the catalogs.")
