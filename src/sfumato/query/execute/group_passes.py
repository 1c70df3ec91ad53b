"""Passes over the rows that choose a few groups of each unit, from both ends of its keyed random order."""

from __future__ import annotations

from sfumato.engines.aggregation import CountRows, Largest
from sfumato.engines.expressions import Compare, Expression, IsNull, Unit, any_of, equal
from sfumato.engines.statements import Join, NamedView, Select, Source, Subquery
from sfumato.engines.statements import Query as Statement
from sfumato.query.execute.grouped_rows import group_place, grouped
from sfumato.query.plan.aggregates import Items, whole_column


def group_passes(
    source: Statement, unit: Items, groups: int, secret: int
) -> tuple[tuple[tuple[str, Statement], ...], Statement]:
    """Contribution bounding: the views to define, and the rows of ``groups`` groups of each unit.

    Each pass over the rows finds the next group from the beginning and the next from the end. An engine that hashes
    rows takes half of the time of a window function for it. Ranks are distinct, so at most ``groups`` groups are kept,
    and all groups of a unit that has no more.
    """
    first, last = (groups + 1) // 2, groups // 2
    origin = unit[0][1].origin if isinstance(unit[0][1], Unit) else None

    def of(table: str) -> Items:
        return (("u", Unit(origin, table)),)

    def joined(table: str) -> Source:
        return Join(NamedView("r"), NamedView(table), equal(Unit(origin, "r"), Unit(origin, table)))

    h = whole_column("h", "r")
    views: list[tuple[str, Statement]] = [
        ("r", Select((("h", group_place(unit, secret)),), Subquery(source), star=True))
    ]
    ends: Items = (
        ("a1", Largest(whole_column("h"), True)),
        *([("b1", Largest(whole_column("h"), False))] if last else []),
        ("n", CountRows()),
    )
    views.append(("f1", grouped(ends, NamedView("r"), unit)))
    for i in range(2, first + 1):
        f = f"f{i - 1}"
        later = Largest(h, True, Compare(">", h, whole_column(f"a{i - 1}", f)))
        earlier = Largest(h, False, Compare("<", h, whole_column(f"b{i - 1}", f))) if i <= last else Largest(
            whole_column(f"b{last}", f), True
        )  # fmt: skip
        ends = ((f"a{i}", later), (f"b{min(i, last)}", earlier), ("n", CountRows()))
        views.append((f"f{i}", grouped(ends, joined(f), of("r"))))
    f = f"f{first}"
    a, b = whole_column(f"a{first}", f), whole_column(f"b{last}", f)
    # Each unit has a first group; it may lack a second.
    ends_of: list[Expression] = [
        *([IsNull(a)] if first > 1 else []),
        Compare("<=", h, a),
        *([Compare(">=", h, b)] if last else []),
    ]
    kept = Select((("n", whole_column("n", f)),), joined(f), where=any_of(*ends_of), star="r")
    return tuple(views), kept
