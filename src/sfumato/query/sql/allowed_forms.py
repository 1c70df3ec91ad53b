"""Allowed properties of syntax nodes. SQL with any other property is refused.

The parser stores details as properties of a node: that a LIKE is negated, that BETWEEN is symmetric, that an alias
renames columns. A rule that ignored such a property would answer a different query.
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.query.sql.refusal import called, refuse

_ONE = frozenset({"this"})
_PAIR = frozenset({"this", "expression"})
_LIST = frozenset({"this", "expressions"})
_FORMS: dict[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.And, exp.Or, exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.Is,
         exp.Nullif, exp.Extract, exp.Filter, exp.WithinGroup, exp.PercentileCont, exp.PercentileDisc, exp.Log,
         exp.Pow),
        _PAIR,
    ),
    **dict.fromkeys(
        (exp.Paren, exp.Not, exp.Neg, exp.Abs, exp.Where, exp.Having, exp.Sum, exp.Avg, exp.Median, exp.Variance,
         exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Year, exp.Quarter, exp.Month, exp.Day,
         exp.DayOfMonth, exp.DayOfWeek, exp.DayOfWeekIso, exp.DayOfYear, exp.Dayname,
         exp.Monthname, exp.LastDay, exp.Hour, exp.Minute, exp.Week, exp.WeekOfYear, exp.Length, exp.TableAlias,
         exp.Min, exp.Max, exp.Mode, exp.ApproxDistinct, exp.Sqrt, exp.Exp, exp.Ln, exp.Sign, exp.Qualify),
        _ONE,
    ),
    **dict.fromkeys((exp.Like, exp.ILike), _PAIR | {"negate"}),
    **dict.fromkeys((exp.Least, exp.Greatest), _LIST | {"ignore_nulls"}),
    exp.Anonymous: _LIST,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.Coalesce: _LIST,
    exp.Count: _LIST | {"big_int"},
    exp.CTE: frozenset({"this", "alias", "materialized"}),
    **dict.fromkeys((exp.DateTrunc, exp.TimestampTrunc, exp.Interval), frozenset({"this", "unit"})),
    **dict.fromkeys((exp.DateAdd, exp.DateSub), _PAIR),
    exp.DateDiff: _PAIR | {"unit", "date_part_boundary"},
    exp.TimeToStr: frozenset({"this", "format"}),
    **dict.fromkeys((exp.Corr, exp.CovarPop, exp.CovarSamp, exp.RegrSlope, exp.RegrIntercept, exp.RegrR2), _PAIR),
    exp.CountIf: _ONE,
    exp.ApproxQuantile: frozenset({"this", "quantile"}),
    **dict.fromkeys((exp.Left, exp.StartsWith, exp.Contains, exp.RegexpLike, exp.RegexpFullMatch), _PAIR),
    exp.WidthBucket: frozenset({"this", "min_value", "max_value", "num_buckets"}),
    exp.Distinct: frozenset({"expressions"}),
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.DPipe: _PAIR | {"safe"},
    exp.Div: _PAIR | {"typed", "safe"},
    exp.IntDiv: _PAIR,
    exp.If: frozenset({"this", "true", "false"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method"}),
    exp.Limit: frozenset({"expression", "offset"}),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Quantile: frozenset({"this", "quantile"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.TryCast: frozenset({"this", "to", "safe"}),
}  # fmt: skip
"""Allowed properties by class of node. Other kinds are checked by their own rule, or have no rule."""
_WORDS: dict[type[exp.Expr], str] = {exp.TableAlias: "Columns are renamed in SELECT, not in FROM or WITH."}


def check_forms(tree: exp.Expr, text: str) -> None:
    """Refuse a statement with a property that no rule reads."""
    for node in tree.walk():
        known = _FORMS.get(type(node))
        if known is None:
            continue
        strange = [name for name, value in node.args.items() if value and name not in known]
        if strange:
            word = strange[0].rstrip("_").replace("_", " ").upper()
            raise refuse(node, text, _WORDS.get(type(node), f"`{called(node, text)}` with {word} is not supported."))
