"""Allowed properties of syntax nodes. SQL with any other property is refused.

The parser stores details as properties of a node: that a LIKE is negated, that BETWEEN is symmetric, that an alias
renames columns. A rule that ignored such a property would answer a different query.
"""

from __future__ import annotations

from typing import Any

from sfumato.query.sql.refusal import called, refuse

__all__ = ["check_forms"]

_ONE = frozenset({"this"})
_PAIR = frozenset({"this", "expression"})
_LIST = frozenset({"this", "expressions"})
_FORMS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "And", "Or", "Add", "Sub", "Mul", "Mod", "Is", "Nullif",
                     "Extract", "Filter", "WithinGroup", "PercentileCont", "PercentileDisc"), _PAIR),
    **dict.fromkeys(("Paren", "Not", "Neg", "Abs", "Where", "Having", "Sum", "Avg", "Median", "Variance", "VariancePop",
                     "Stddev", "StddevSamp", "StddevPop", "Year", "Quarter", "Month", "Day", "DayOfMonth", "DayOfWeek",
                     "Hour", "Minute", "Week", "WeekOfYear", "Length", "TableAlias", "Min", "Max", "Mode"), _ONE),
    **dict.fromkeys(("Like", "ILike"), _PAIR | {"negate"}),
    **dict.fromkeys(("Least", "Greatest"), _LIST | {"ignore_nulls"}),
    "Anonymous": _LIST,
    "Between": frozenset({"this", "low", "high"}),
    "Case": frozenset({"this", "ifs", "default"}),
    "Cast": frozenset({"this", "to"}),
    "Coalesce": _LIST,
    "Count": _LIST | {"big_int"},
    "CTE": frozenset({"this", "alias", "materialized"}),
    "Distinct": frozenset({"expressions"}),
    "Div": _PAIR | {"typed", "safe"},
    "If": frozenset({"this", "true", "false"}),
    "Join": frozenset({"this", "on", "using", "side", "kind", "method"}),
    "Limit": frozenset({"expression", "offset"}),
    "Order": frozenset({"expressions"}),
    "Ordered": frozenset({"this", "desc"}),
    "Quantile": frozenset({"this", "quantile"}),
    "Substring": frozenset({"this", "start", "length"}),
    "TryCast": frozenset({"this", "to", "safe"}),
}  # fmt: skip
"""Allowed properties by kind of node. Other kinds are checked by their own rule, or have no rule."""
_WORDS = {"TableAlias": "Columns are renamed in SELECT, not in FROM or WITH."}


def check_forms(tree: Any, text: str) -> None:
    """Refuse a statement with a property that no rule reads."""
    for node in tree.walk():
        kind = type(node).__name__
        known = _FORMS.get(kind)
        if known is None:
            continue
        strange = [name for name, value in node.args.items() if value and name not in known]
        if strange:
            word = strange[0].rstrip("_").replace("_", " ").upper()
            raise refuse(node, text, _WORDS.get(kind, f"`{called(node, text)}` with {word} is not supported."))
