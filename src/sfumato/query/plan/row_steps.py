"""Steps on the noisy rows of an answer: HAVING, window functions, DISTINCT, ORDER BY, LIMIT and outer queries.

All of it is post-processing. Steps read released values only, never private rows, so that they cost nothing whatever
they compute (Dwork and Roth 2014, proposition 2.1, doi:10.1561/0400000042).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sfumato.query.plan.outputs import Output

OrderItem = tuple[Output, bool]
"""What is sorted by, and whether it is descending. Missing values come last in both directions."""


@dataclass(frozen=True)
class WindowColumn(Output):
    """The result of an earlier :class:`Compute`."""

    index: int
    kind: str

    def family(self, keys: Sequence[str]) -> str:
        return self.kind


@dataclass(frozen=True, kw_only=True)
class Frame:
    """The rows around the present one that a window function reads; None is without end.

    By ROWS, ``start`` and ``end`` are relative places. Without ``rows``, rows of equal rank are read together.
    """

    start: int | None = None
    end: int | None = 0
    rows: bool = False


@dataclass(frozen=True, kw_only=True)
class WindowCall:
    """A window function over noisy rows; an aggregate of an outer query is one over its whole group.

    ``lookup`` is the first argument in the row whose ``partition`` equals the other arguments here; missing if none.
    """

    function: str
    args: tuple[Output, ...] = ()
    partition: tuple[Output, ...] = ()
    order: tuple[OrderItem, ...] = ()
    frame: Frame | None = None
    """None: all rows of the partition."""
    offset: int = 1
    """Distance of LAG and LEAD, number of buckets of NTILE."""


@dataclass(frozen=True)
class Keep:
    """WHERE, HAVING or QUALIFY on noisy rows: those for which a condition holds."""

    condition: Output


@dataclass(frozen=True)
class Compute:
    """A window function over the rows that are left."""

    index: int
    call: WindowCall


@dataclass(frozen=True)
class Collapse:
    """GROUP BY or DISTINCT on noisy rows: the first row of each group. Without keys there is always one row."""

    keys: tuple[Output, ...]


@dataclass(frozen=True)
class Sort:
    """ORDER BY."""

    by: tuple[OrderItem, ...]


@dataclass(frozen=True)
class Take:
    """LIMIT and OFFSET."""

    limit: int | None
    offset: int = 0


RowStep = Keep | Compute | Collapse | Sort | Take


def step_outputs(step: RowStep) -> tuple[Output, ...]:
    """The expressions that a step reads."""
    match step:
        case Keep(condition):
            return (condition,)
        case Compute(_, call):
            return (*call.args, *call.partition, *(item for item, _ in call.order))
        case Collapse(keys):
            return keys
        case Sort(by):
            return tuple(item for item, _ in by)
        case Take():
            return ()


def chosen_by_noise(steps: Sequence[RowStep]) -> bool:
    """Whether the rows of an answer can be chosen by noisy values: by a condition, or by an order that is cut."""
    ordered = False
    for step in steps:
        match step:
            case Keep() | Collapse() if any(output.noisy for output in step_outputs(step)):
                return True
            case Sort(by):
                ordered = any(item.noisy for item, _ in by)
            case Take() if ordered:
                return True
    return False


def changed_step(step: RowStep, change: Callable[[Output], Output]) -> RowStep:
    """The step with other expressions."""

    def several(items: tuple[Output, ...]) -> tuple[Output, ...]:
        return tuple(change(item) for item in items)

    def ordered(items: tuple[OrderItem, ...]) -> tuple[OrderItem, ...]:
        return tuple((change(item), descending) for item, descending in items)

    match step:
        case Keep(condition):
            return Keep(change(condition))
        case Compute(index, call):
            made = replace(call, args=several(call.args), partition=several(call.partition), order=ordered(call.order))
            return Compute(index, made)
        case Collapse(keys):
            return Collapse(several(keys))
        case Sort(by):
            return Sort(ordered(by))
        case Take():
            return step
