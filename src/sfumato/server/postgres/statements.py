"""Kinds of statements: what a client may send, recognized by its first words, and parsed where it is a query.

A query is a question if it names a private table. Queries on system catalogs, on the views of sfumato, on public
tables and on no table at all are answered by the catalog engine, at no cost.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify
from sqlglot.tokenizer_core import TokenType

from sfumato.query.plan.catalog import Catalog
from sfumato.query.sql.statement import split_error_clause
from sfumato.server.postgres.catalog_relations import relations
from sfumato.server.postgres.sqlstates import SqlError
from sfumato.server.postgres.statement_kinds import (
    CatalogStatement,
    Command,
    Copy,
    Declare,
    Empty,
    ExecuteStatement,
    Explain,
    Fetch,
    Prepare,
    QuestionStatement,
    SchemaStatement,
    SetStatement,
    Show,
    Statement,
)
from sfumato.server.postgres.statement_text import catalog_text, tokens, with_date_literals, without_prefix

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "(", "FROM")
_TRANSACTION = {
    "BEGIN": "BEGIN", "START": "START TRANSACTION", "COMMIT": "COMMIT", "END": "COMMIT", "ROLLBACK": "ROLLBACK",
    "ABORT": "ROLLBACK", "SAVEPOINT": "SAVEPOINT", "RELEASE": "RELEASE", "DEALLOCATE": "DEALLOCATE",
    "DISCARD": "DISCARD ALL", "CLOSE": "CLOSE CURSOR", "LISTEN": "LISTEN", "UNLISTEN": "UNLISTEN",
}  # fmt: skip


def read_statement(sql: str, catalog: Catalog) -> Statement:
    """Recognize one statement. What is not supported is refused; nothing is run."""
    found = tokens(sql)
    if not found:
        return Empty()
    words = [token.text.upper() for token in found[:3]]
    first = words[0]
    if first in _QUERIES:
        return _query(sql, catalog)
    match first:
        case "EXPLAIN":
            return _explain(sql, found, catalog)
        case "COPY":
            return _copy(sql, found, catalog)
        case "SHOW" | "DESCRIBE" | "DESC":
            return _show(sql, found)
        case "SET" | "RESET":
            return _set(found)
        case "DECLARE":
            return _declare(sql, found, catalog)
        case "FETCH":
            return _fetch(found)
        case "PREPARE" if words[1:2] != ["TRANSACTION"]:
            return _prepare(sql, found)
        case "EXECUTE":
            return _execute(found)
    if first in _TRANSACTION:
        if first in ("COMMIT", "ROLLBACK") and words[1:2] == ["PREPARED"]:
            raise SqlError("0A000", "two-phase transactions are not supported")
        return _transaction(first, found)
    hint = "Ask with SELECT. Budgets are set by the owner of the data set."
    raise SqlError("0A000", f"{first[:30]} is not supported: nothing can be written here", hint)


def _query(sql: str, catalog: Catalog) -> QuestionStatement | CatalogStatement:
    prefixes = ("public",), (catalog.dataset.lower(), "public")
    plain = without_prefix(sql, *prefixes) if "public" in sql.lower() and "public" not in _names(catalog) else sql
    if "to_date" in plain.lower() or "to_timestamp" in plain.lower():
        plain = with_date_literals(plain)
    tree = _parsed(split_error_clause(catalog_text(plain))[0])
    if tree is None:
        return QuestionStatement(sql=plain, tree=None)
    named = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    used = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier) and t.name.lower() not in named]
    private = {name.lower() for name in catalog.private}
    known = private | {name.lower() for name in catalog.public}
    if not any(_is_private(table, private, known) for table in used):
        return CatalogStatement(tree=tree)
    return (
        CatalogStatement(tree=tree, columns_only=True)
        if _asks_columns(tree)
        else QuestionStatement(sql=plain, tree=tree)
    )


def _asks_columns(tree: object) -> bool:
    """Whether a query gives no rows, whatever tables hold, as clients send it to learn the columns."""
    if not isinstance(tree, exp.Select) or tree.find(exp.AggFunc, exp.Group) is not None:
        return False
    limit, where = tree.args.get("limit"), tree.args.get("where")
    none = isinstance(limit, exp.Limit) and limit.expression == exp.Literal.number(0)
    return none or (where is not None and simplify(where.this.copy(), dialect="postgres") == exp.false())


def _names(catalog: Catalog) -> Collection[str]:
    return {name.lower() for name in (*catalog.private, *catalog.public)}


def _is_private(table: exp.Table, private: Collection[str], known: Collection[str]) -> bool:
    """Whether a table is private, or unknown: whoever answers questions knows which name was meant."""
    name, schema = table.name.lower(), table.db.lower()
    if schema:
        return schema not in ("pg_catalog", "information_schema", "sfumato")
    return name in private or (name not in known and ("pg_catalog", name) not in relations())


def _parsed(sql: str) -> Any:
    try:
        trees = [tree for tree in sqlglot.parse(sql, dialect="postgres") if tree is not None]
    except (SqlglotError, RecursionError, ValueError, TypeError, AttributeError):
        return None
    return trees[0] if len(trees) == 1 else None


def _explain(sql: str, found: list[Any], catalog: Catalog) -> Explain:
    place = 1
    while place < len(found) and found[place].text.upper() in ("VERBOSE", "ANALYZE", "ANALYSE"):
        if found[place].text.upper() != "VERBOSE":
            raise SqlError("0A000", "EXPLAIN ANALYZE would run the query", "EXPLAIN shows its cost and error for free.")
        place += 1
    if place >= len(found):
        raise SqlError("42601", "EXPLAIN needs a query")
    query = _query(sql[found[place].start :], catalog)
    if not isinstance(query, QuestionStatement):
        raise SqlError("0A000", "this query reads public tables only and costs nothing", "Run it.")
    return Explain(question=query)


def _show(sql: str, found: list[Any]) -> Show | SchemaStatement:
    words = [token.text for token in found]
    if words[0].upper() != "SHOW" or [word.upper() for word in words[1:]] == ["TABLES"]:
        return SchemaStatement(sql=sql)
    if [word.upper() for word in words[1:]] == ["TRANSACTION", "ISOLATION", "LEVEL"]:
        return Show(name="transaction_isolation")
    if [word.upper() for word in words[1:]] in (["TIME", "ZONE"], ["TIME ZONE"]):
        return Show(name="timezone")
    return Show(name="".join(words[1:]))


def _set(found: list[Any]) -> SetStatement | Command:
    words = [token.text for token in found]
    upper = [word.upper() for word in words]
    if upper[0] == "RESET":
        return Command(tag="RESET ALL") if upper[1:] == ["ALL"] else SetStatement(name="".join(words[1:]), value=None)
    place, local = 1, False
    if upper[1:2] in (["SESSION"], ["LOCAL"]) and upper[2:3] not in (["CHARACTERISTICS"], ["="], ["TO"]):
        place, local = 2, upper[1] == "LOCAL"
    rest = upper[place:]
    if rest[:1] == ["TRANSACTION"] or rest[:2] == ["SESSION", "CHARACTERISTICS"] or rest[:1] == ["CONSTRAINTS"]:
        return Command(tag="SET")
    if rest[:2] == ["TIME", "ZONE"] or rest[:1] == ["TIME ZONE"]:
        return SetStatement(name="timezone", value=words[-1], local=local)
    if rest[:1] == ["NAMES"]:
        return SetStatement(name="client_encoding", value=words[-1], local=local)
    stop = next((i for i in range(place, len(words)) if found[i].token_type is TokenType.EQ or upper[i] == "TO"), None)
    if stop is None or stop == place or stop + 1 >= len(words):
        raise SqlError("42601", "SET is written as SET name = value", "For example: SET sfumato.epsilon = 0.1")
    value = "".join(" , " if word == "," else word for word in words[stop + 1 :]).replace(" , ", ", ")
    default = upper[stop + 1 :] == ["DEFAULT"] and found[stop + 1].token_type is not TokenType.STRING
    return SetStatement(name="".join(words[place:stop]), value=None if default else value, local=local)


def _declare(sql: str, found: list[Any], catalog: Catalog) -> Declare:
    words = [token.text.upper() for token in found]
    start = words.index("FOR") + 1 if "FOR" in words else len(found)
    if (
        "CURSOR" not in words[:start]
        or start >= len(found)
        or {"BINARY", "SCROLL"} & set(words[2:start]) - ({"SCROLL"} if "NO" in words[:start] else set())
    ):
        raise SqlError("0A000", "only DECLARE name [NO SCROLL] CURSOR FOR query is supported")
    hold = "HOLD" in words[:start] and "WITHOUT" not in words[:start]
    return Declare(name=found[1].text, hold=hold, query=_query(sql[found[start].start :], catalog))


def _fetch(found: list[Any]) -> Fetch:
    words = [token.text for token in found[1:] if token.text.upper() not in ("FORWARD", "NEXT", "FROM", "IN")]
    count = words[0].upper() if len(words) > 1 else "1"
    if not words or len(words) > 2 or not (count == "ALL" or count.isdigit()):
        raise SqlError("0A000", "only FETCH [FORWARD] count FROM name and FETCH ALL are supported")
    return Fetch(name=words[-1], count=None if count == "ALL" else int(count))


def _prepare(sql: str, found: list[Any]) -> Prepare:
    words = [token.text.upper() for token in found]
    start = words.index("AS") + 1 if "AS" in words else len(found)
    if start >= len(found) or found[start].text.upper() not in _QUERIES:
        raise SqlError("0A000", "only PREPARE name (types) AS SELECT ... is supported")
    listed = "".join(f" {token.text.lower()}" for token in found[2 : start - 1]).strip(" ()")
    types = tuple(" ".join(one.split()) for one in listed.split(",")) if listed else ()
    return Prepare(name=found[1].text, types=types, sql=sql[found[start].start :])


def _execute(found: list[Any]) -> ExecuteStatement:
    """The name and the values, each of which is one constant."""
    if len(found) < 2:
        raise SqlError("42601", "EXECUTE needs the name of a prepared statement")
    values: list[str | None] = []
    sign, inside = "", found[3:-1] if len(found) > 2 else []
    for token in inside:
        match token.token_type:
            case TokenType.COMMA:
                continue
            case TokenType.DASH:
                sign = "-"
            case TokenType.STRING | TokenType.NUMBER | TokenType.TRUE | TokenType.FALSE:
                values.append(sign + token.text)
                sign = ""
            case TokenType.NULL:
                values.append(None)
            case _:
                raise SqlError("0A000", "EXECUTE takes constants")
    return ExecuteStatement(name=found[1].text, values=tuple(values))


def _transaction(first: str, found: list[Any]) -> Command:
    words = [token.text for token in found if token.text.upper() not in ("WORK", "TRANSACTION", "SAVEPOINT", "PREPARE")]
    if first == "ROLLBACK" and "TO" in (word.upper() for word in words):
        return Command(tag="ROLLBACK TO", argument=words[-1])
    if first == "SAVEPOINT":
        return Command(tag="SAVEPOINT", argument=words[-1])
    return Command(tag=_TRANSACTION[first], argument=words[-1] if len(words) > 1 else "")


def _copy(sql: str, found: list[Any], catalog: Catalog) -> Copy:
    closing, depth = 0, 0
    for place, token in enumerate(found):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if place and depth == 0:
            closing = place
            break
    words = [token.text.upper() for token in found[closing + 1 :]]
    if found[1:2] == [] or found[1].token_type is not TokenType.L_PAREN or words[:2] != ["TO", "STDOUT"]:
        raise SqlError(
            "0A000",
            "only COPY (SELECT ...) TO STDOUT is supported",
            "A table cannot be copied: its rows are about people.",
        )
    query = _query(" " * found[2].start + sql[found[2].start : found[closing].start], catalog)
    texts = [token.text for token in found[closing + 3 :] if token.text.upper() not in ("WITH", "(", ")", ",")]
    return _copy_options(query, texts)


def _copy_options(query: QuestionStatement | CatalogStatement, words: list[str]) -> Copy:
    binary, csv, header, given, place = False, False, False, dict[str, str](), 0
    while place < len(words):
        word = words[place].upper()
        after = words[place + 1] if place + 1 < len(words) else ""
        if word == "FORMAT" and after.upper() in ("CSV", "TEXT"):
            csv, place = after.upper() == "CSV", place + 2
        elif word == "FORMAT" and after.upper() == "BINARY":
            binary, place = True, place + 2
        elif word in ("CSV", "BINARY"):  # as before PostgreSQL 9
            csv, binary, place = word == "CSV", word == "BINARY", place + 1
        elif word == "HEADER":
            stated = after.upper() in ("TRUE", "FALSE", "ON", "OFF", "1", "0")
            header, place = after.upper() not in ("FALSE", "OFF", "0"), place + 1 + stated
        elif word in ("DELIMITER", "NULL"):
            skip = after.upper() == "AS"
            given[word] = words[place + 1 + skip] if place + 1 + skip < len(words) else ""
            place += 2 + skip
        elif word == "ENCODING" and after.lower() in ("utf8", "utf-8"):
            place += 2
        else:
            raise SqlError(
                "0A000",
                f"COPY has no option {word[:30]} here",
                "Options: FORMAT csv, text or binary, HEADER, DELIMITER, NULL.",
            )
    delimiter = given.get("DELIMITER", "," if csv else "\t")
    if len(delimiter) != 1 or delimiter in '\\"\r\n':
        raise SqlError("22023", "the COPY delimiter must be a single character")
    return Copy(
        query=query,
        binary=binary,
        csv=csv,
        header=header,
        delimiter=delimiter,
        null=given.get("NULL", "" if csv else "\\N"),
    )
