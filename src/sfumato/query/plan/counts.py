"""Counts of rows, of units and of different values."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.engines.aggregation import CountRows
from sfumato.engines.expressions import TRUE, Expression, constant, when
from sfumato.query.plan.aggregate import HUGE, Added, Aggregate, Items, Writer, column_of, whole_column


@dataclass(frozen=True, kw_only=True)
class Count(Added):
    """Rows for which a condition holds; with ``once``, units that have such a row."""

    condition: Expression = TRUE
    once: bool = False

    @property
    def title(self) -> str:  # type: ignore[override]
        return "Number of units" if self.once else "Number of rows"

    @property
    def every(self) -> bool:
        return self.condition == TRUE

    def sensitivity(self, rows: int) -> int:
        return 1 if self.once else rows

    def ends(self, rows: int) -> tuple[int, int]:
        return 0, 1 if self.once else rows

    def columns(self, name: str) -> Items:
        return () if self.every else ((name, self.condition),)

    def total(self, name: str) -> Expression:
        return CountRows() if self.every else CountRows(where=column_of(name, self.condition))

    def numbers(self, name: str) -> tuple[Items, Items]:
        if self.every:
            return (), ()
        return ((name, when(self.condition, constant(1), constant(0))),), ((name, whole_column(name)),)

    def worst(self, rows: int) -> int:
        return max(max(0, min(1 if self.once else rows, number)) for number in (0, 1, HUGE))

    def described(self, written: Writer) -> str:
        return f"Count of {'units' if self.once else 'rows'} where {written(self.condition)}"


@dataclass(frozen=True, kw_only=True)
class DistinctCount(Aggregate):
    """Different values among the rows for which a condition holds."""

    title = "Number of different values"

    value: Expression
    condition: Expression

    def sensitivity(self, rows: int) -> int:
        return rows

    def worst(self, rows: int) -> int:
        return len(range(HUGE)[:rows])  # each row that the engine keeps adds 1 in one place

    def described(self, written: Writer) -> str:
        return f"Distinct {written(self.value)} where {written(self.condition)}"


@dataclass(frozen=True, kw_only=True)
class FittingUnits(Aggregate):
    """Two numbers over all groups: the units that the contribution limits fit, and the units that they cut.

    Sensitivity: each unit counts 1 in one of the two, and which depends on its own rows alone. Adding a unit changes
    one of the numbers by 1 and the other not.
    """

    title = "Number of units that the limits fit, and that they cut"
    once = True

    def sensitivity(self, rows: int) -> int:
        return 1

    def worst(self, rows: int) -> int:
        return 1  # a unit counts once, in one of two numbers, whatever groups it is in

    def described(self, written: Writer) -> str:
        return "Units that the limits fit, and units that they cut"
