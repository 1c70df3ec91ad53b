"""Offers: other queries that would be answered, named with a refusal.

An offer is coarser (a sum, an extreme or a count instead of a list) or about other people (one condition left out).
Nothing is answered or recorded by an offer. That it would be answered is what the analyst would learn by asking it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp, parse_one

from sfumato.auditing.auditor import Auditor
from sfumato.errors import AnswerFailed, QueryRefused

_COARSER = {"values": ("SUM", "AVG", "MAX", "MIN"), "sum": ("MAX", "MIN"), "avg": ("MAX", "MIN"), "max": (), "min": ()}
_TRIED = 24


def offers(auditor: Auditor, query: str, *, most: int) -> tuple[str, ...]:
    """At most ``most`` queries like this one that would be answered now."""
    found: list[str] = []
    for number, text in enumerate(_candidates(auditor, query)):
        if len(found) == most or number == _TRIED:
            break
        try:
            if auditor.would_answer(text):
                found.append(text)
        except (QueryRefused, AnswerFailed):
            continue
    return tuple(found)


def _candidates(auditor: Auditor, query: str) -> Iterator[str]:
    """Coarser queries about the same people, then the same query with one condition less."""
    try:
        parsed = auditor.read(query)
        tree: Any = parse_one(query, read="duckdb")
    except QueryRefused:
        return
    column = parsed.column
    if column in auditor.secrets and not isinstance(tree.expressions[0], exp.Star):
        name = exp.column(column, quoted=True)
        for function in _COARSER.get(parsed.kind, ()):
            yield _selecting(tree, exp.func(function, name.copy()))
        for value in auditor.declared(column) or ():
            if value is not None:
                counted = tree.copy()
                counted.where(exp.EQ(this=name.copy(), expression=exp.convert(value)), copy=False)
                yield _selecting(counted, exp.Count(this=exp.Star()))
    where = tree.args.get("where")
    parts = list(where.this.flatten()) if where is not None and isinstance(where.this, exp.And) else []
    for left_out in range(len(parts)):
        others = [part.copy() for number, part in enumerate(parts) if number != left_out]
        wider = tree.copy()
        wider.set("where", exp.Where(this=exp.and_(*others)))
        yield str(wider.sql(dialect="duckdb"))


def _selecting(tree: Any, item: object) -> str:
    other = tree.copy()
    other.set("expressions", [item])
    return str(other.sql(dialect="duckdb"))
