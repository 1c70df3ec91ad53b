"""Cells of a workload: the combinations of public values that its conditions tell apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from fractions import Fraction
from itertools import count, islice
from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from sfumato.data.in_process import open_duckdb
from sfumato.dataset import Kind
from sfumato.engines.backends.duckdb.dialect import DuckdbGenerator
from sfumato.engines.expressions import (
    NOTHING,
    TRUE,
    Arithmetic,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Compare,
    Constant,
    Expression,
    In,
    IsNull,
    all_of,
    constant,
    equal,
)
from sfumato.engines.functions import DayNumber
from sfumato.engines.statements import Join, Select, Source, Values
from sfumato.errors import QueryRefused
from sfumato.query.plan.relational import PlanNode, Scan, columns_of
from sfumato.query.plan.scalar import Scalar

if TYPE_CHECKING:
    from sfumato.query.session import Session

Value = bool | int | float | str | date
Matrix = npt.NDArray[np.float64]
_MOST_CELLS = 1024
_MOST_GROUPS = 50_000
"""Combinations of values of the columns that conditions use."""


@dataclass(frozen=True, kw_only=True)
class CellColumn:
    """A column that conditions use: which of ``values`` a row has, as a whole number, and the values themselves."""

    scalar: Scalar
    code: Scalar
    values: tuple[Value | None, ...]
    """Declared values, values that stand for those that were not declared, and None."""


def cell_columns(session: Session, scan: PlanNode, conditions: list[Expression]) -> list[CellColumn]:
    """The columns used in the conditions; each needs publicly known values."""
    compared: dict[str, _Compared] = {}
    for condition in conditions:
        _compare(condition, compared)
    used = columns_of(conditions)
    columns, cells = [], 1
    for name, scalar in _declared(session, scan):
        if not columns_of([scalar.node]) & used:
            continue
        values = scalar.keys()
        if values is None:
            raise QueryRefused(
                f"Workload conditions need columns with declared values, and `{name}` has none.",
                fix="Declare its values, or use ask() for this query.",
            )
        [inner] = columns_of([scalar.node])
        columns.append(_column(name, scalar, values, compared.get(inner, _Compared())))
        cells *= len(columns[-1].values)
    if cells > _MOST_GROUPS:
        raise QueryRefused(f"The workload's columns have {cells:,} combinations; at most {_MOST_GROUPS:,} are handled.")
    return columns


@dataclass
class _Compared:
    """What the conditions compare a column with."""

    constants: dict[Value, Constant] = field(default_factory=dict)
    """All constants by their value."""
    cuts: dict[Value, Constant] = field(default_factory=dict)
    """Those that it is less or more than."""
    computed: bool = False
    """Whether a condition uses it in another way, so that no few values stand for all."""


def _compare(node: Expression, compared: dict[str, _Compared]) -> None:
    """Collect what a condition compares its columns with."""
    used = columns_of([node])
    if not used or isinstance(node, ColumnRef):
        return
    match node:
        case Compare(sign, a, Constant() as value) | Compare(sign, Constant() as value, a) if _note(
            a, [value], compared, cut=sign not in ("=", "<>")
        ):
            pass
        case In(a, items) if _note(a, items, compared, cut=False):
            pass
        case IsNull(ColumnRef()):
            pass
        case _:
            for part in node.parts():
                if part.type == "flag":
                    _compare(part, compared)
                else:
                    for name in columns_of([part]):
                        compared.setdefault(name, _Compared()).computed = True


def _note(a: Expression, values: Iterable[Constant], compared: dict[str, _Compared], *, cut: bool) -> bool:
    """Note the constants that a column, or a linear function of it, is compared with; False for other expressions.

    A linear function is compared with a constant as the column is with where it has that value. Floats are rounded, so
    that whole numbers near that place are cells of their own.
    """
    line = _line(a)
    if line is None:
        return False
    [name] = columns_of([a])
    known = compared.setdefault(name, _Compared())
    for value in values:
        found = {value.value: value}
        if line != (Fraction(1), Fraction(0)):
            place = (Fraction(value.value) - line[1]) / line[0]
            near = [Fraction(end) for end in range(floor(place) - 1, ceil(place) + 2)]
            found = {float(one): constant(float(one)) for one in [place, *near]}
            cut = True
        known.constants |= found
        if cut:
            known.cuts |= found
    return True


def _line(node: Expression) -> tuple[Fraction, Fraction] | None:
    """Slope and value at 0 of a linear function of a column that is not constant; None for other expressions."""
    match node:
        case ColumnRef():
            return Fraction(1), Fraction(0)
        case Cast(a, "float") | Coalesce((a, Constant())):
            return _line(a)
        case Arithmetic(sign, a, b):
            line, number = _line(a), _number(b)
            if number is None and sign in "+*":
                line, number = _line(b), _number(a)
        case _:
            return None
    if number is None:
        return None
    if line is None or (sign in "*/" and not number):
        return None
    slope, start = line
    match sign:
        case "+":
            return slope, start + number
        case "-":
            return slope, start - number
        case "*":
            return slope * number, start * number
    return slope / number, start / number


def _number(node: Expression) -> Fraction | None:
    inner = node.a if isinstance(node, Cast) else node
    return Fraction(inner.value) if isinstance(inner, Constant) and inner.kind in ("int", "float") else None


def _column(name: str, scalar: Scalar, values: tuple[Value, ...], compared: _Compared) -> CellColumn:
    """The place of a row's value among the declared values, the constants, what lies between those, and NULL.

    A value that the owner did not declare meets the same comparisons as every other value that equals none of the
    constants and lies between the same two. One of them therefore stands for all.
    """
    x = scalar.node
    if scalar.kind is Kind.BOOLEAN:
        return _placed(scalar, [(IsNull(x), 2), (x, 1)], constant(0), (False, True, None))
    if compared.computed:
        raise QueryRefused(
            f"Conditions of a workload compare `{name}` with constants, because it may have undeclared values.",
            fix="Use =, <>, <, <=, >, >=, IN, BETWEEN and IS NULL on the column itself, or ask() for this query.",
        )
    listed = scalar.values is not None
    cuts = dict(compared.cuts) if listed else {values[0]: None, values[-1]: None} | compared.cuts
    known = set(values)
    points = [value for value in compared.constants if value not in known and _possible(scalar.kind, value)]
    places: list[Value | None] = [*values, *points]
    tests: list[tuple[Expression, Expression]] = [(equal(x, constant(value)), constant(len(values) + i))
                                                  for i, value in enumerate(points)]  # fmt: skip
    if listed:
        tests = [*((equal(x, constant(value)), constant(place)) for place, value in enumerate(values)), *tests]
    else:
        inside = all_of(Compare(">=", x, constant(values[0])), Compare("<=", x, constant(values[-1])))
        tests = [(inside, _distance(x, values[0])), *tests]
    ends = sorted(cuts)
    taken = {*known, *points}
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        other = _between(name, low, high, taken, scalar.kind)
        if other is not None:
            places.append(other)
            below = TRUE if high is None else Compare("<", x, cuts[high] or constant(high))
            tests.append((below, constant(len(places) - 1)))
    return _placed(scalar, [(IsNull(x), len(places)), *tests], constant(len(places)), (*places, None))


def _placed(
    scalar: Scalar,
    tests: Sequence[tuple[Expression, Expression | int]],
    default: Expression,
    values: tuple[Value | None, ...],
) -> CellColumn:
    """The place of a row's value among ``values``: that of the first test that holds."""
    places = tuple((test, constant(place) if isinstance(place, int) else place) for test, place in tests)
    return CellColumn(scalar=scalar, code=Scalar(node=Case(places, default), kind=Kind.INTEGER), values=values)


def _distance(x: Expression, first: Value) -> Expression:
    """How many whole numbers or days a value lies above the first."""
    if isinstance(first, date):
        return Arithmetic("-", DayNumber(x), constant(first.toordinal() - 1))
    return Arithmetic("-", x, constant(first))


def _possible(kind: Kind, value: Value) -> bool:
    return kind is not Kind.INTEGER or Fraction(value).denominator == 1  # type: ignore[arg-type]


def _between(name: str, low: Value | None, high: Value | None, taken: set[Value], kind: Kind) -> Value | None:
    """A value between two others (None: no bound) that has no place yet; None where there is none."""
    near = islice(_candidates(low, high, min(taken), kind), len(taken) + 1)
    found = next((value for value in near if value not in taken), None)
    if found is None and kind not in (Kind.INTEGER, Kind.DATE):
        raise QueryRefused(
            f"The constants that `{name}` is compared with lie too close together for a workload.",
            fix="Use ask() for this query.",
        )
    return found


def _candidates(low: Value | None, high: Value | None, some: Value, kind: Kind) -> Iterator[Value]:
    """Values strictly between two others, near one of them; near ``some`` where there are none."""
    up = low is not None or high is None
    start = (some if low is None else low) if up else high
    for i in count(1):
        step = i if up else -i
        match start:
            case int() | float() if kind is Kind.INTEGER:
                value: Value = (floor(start) if up else ceil(start)) + step
            case int() | float():
                far = max(1.0, abs(start)) if low is None or high is None else (float(high) - float(low)) / 2**i  # type: ignore[arg-type]
                value = start + (step * far if low is None or high is None else far)
            case str():
                value = start + "\x01" * i if up else "\x01" * (i - 1)
            case datetime():
                value = start + timedelta(microseconds=step)
            case date():
                value = start + timedelta(days=step)
            case _:
                raise AssertionError("a column has values of these kinds only")
        if (low is not None and value <= low) or (high is not None and value >= high):  # type: ignore[operator]
            return
        yield value


def _declared(session: Session, scan: PlanNode) -> list[tuple[str, Scalar]]:
    """Declared columns of the scanned table with their internal names."""
    from sfumato.query.sql.bind import Binder

    assert isinstance(scan, Scan)
    relation = Binder(session.catalog, "")._scan(session.catalog.private[scan.table], scan.table)
    return [(name, scalar) for _, name, scalar in relation.columns.items]


def conditions_over_cells(columns: list[CellColumn], conditions: list[Expression]) -> npt.NDArray[np.uint8]:
    """The combinations of values that meet each condition, evaluated on public values only."""
    if not columns:
        return np.ones((len(conditions), 1), dtype=np.uint8)
    source: Source | None = None
    for i, column in enumerate(columns):
        [name] = columns_of([column.scalar.node])
        rows = tuple((constant(place), _constant(value)) for place, value in enumerate(column.values))
        values = Values(rows, f"t{i}", (f"place{i}", name))
        source = values if source is None else Join(source, values, TRUE)
    assert source is not None
    tests = tuple((f"q{i}", Coalesce((Cast(test, "int"), constant(0)))) for i, test in enumerate(conditions))
    order = tuple(ColumnRef(f"place{i}", "int") for i in range(len(columns)))
    with open_duckdb(spills=False) as connection:
        found = connection.execute(DuckdbGenerator().write(Select(tests, source, order_by=order))).fetchnumpy()
    return np.array([found[f"q{i}"] for i in range(len(conditions))], dtype=np.uint8)


def _constant(value: Value | None) -> Constant:
    return NOTHING if value is None else constant(value)


def merged_cells(matrix: npt.NDArray[np.uint8]) -> tuple[Matrix, npt.NDArray[np.int64]]:
    """Columns of a matrix, each once, in the order of their first place; and the new column of each old one."""
    _, first, inverse = np.unique(matrix, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    if len(order) > _MOST_CELLS:
        raise QueryRefused(
            f"The queries tell {len(order):,} sets of rows apart; at most {_MOST_CELLS:,} are handled.",
            fix="Use fewer queries, or ask() for some of them.",
        )
    return matrix[:, first[order]].astype(np.float64), place[inverse.ravel()]
