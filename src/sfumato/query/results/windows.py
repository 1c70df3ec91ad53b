"""Window functions over noisy rows, as SQL defines them. They have no intervals: many rows are in each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from statistics import median
from typing import Any

from sfumato.query.plan.row_steps import Frame, WindowCall

Columns = Sequence[Sequence[Any]]
"""Values by column, then by row."""


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


def sorted_rows(rows: Sequence[int], columns: Columns, descending: Sequence[bool]) -> list[int]:
    """Rows in the order of some columns. Missing values come last in both directions; the sort is stable."""
    found = list(rows)
    for column, reverse in reversed(list(zip(columns, descending, strict=True))):
        present = [row for row in found if column[row] is not None]
        present.sort(key=cmp_to_key(lambda a, b, c=column: _compare(c[a], c[b])), reverse=reverse)  # type: ignore[misc]
        found = present + [row for row in found if column[row] is None]
    return found


def blank_value(call: WindowCall) -> object:
    """The aggregate of no rows."""
    return 0 if call.function == "count" else None


def window_values(
    call: WindowCall, rows: Sequence[int], args: Columns, partition: Columns, order: Columns
) -> dict[int, object]:
    """The value of a window function for each of ``rows``."""
    if call.function == "lookup":
        places = {tuple([column[row] for column in partition]): row for row in rows}
        sought = {row: tuple([column[row] for column in args[1:]]) for row in rows}
        return {row: args[0][places[key]] if None not in key and key in places else None for row, key in sought.items()}
    parts: dict[tuple[object, ...], list[int]] = {}
    for row in rows:
        parts.setdefault(tuple([column[row] for column in partition]), []).append(row)
    values: dict[int, object] = {}
    for part in parts.values():
        ordered = sorted_rows(part, order, [descending for _, descending in call.order])
        values |= dict(zip(ordered, _over(call, ordered, args, order), strict=True))
    return values


def _over(call: WindowCall, rows: list[int], args: Columns, order: Columns) -> list[object]:
    ranked = [tuple([column[row] for column in order]) for row in rows]
    firsts = _firsts(ranked)
    if call.function in _RANKS:
        return _RANKS[call.function](firsts, call.offset)
    column = [args[0][row] for row in rows] if args else [True] * len(rows)
    if call.function in ("lag", "lead"):
        default = [args[1][row] for row in rows] if len(args) > 1 else [None] * len(rows)
        step = -call.offset if call.function == "lag" else call.offset
        places = [place + step for place in range(len(rows))]
        return [
            column[place] if 0 <= place < len(rows) else other for place, other in zip(places, default, strict=True)
        ]
    if call.frame is None:
        whole = _TOTALS[call.function](column)
        return [whole] * len(rows)
    ends = _ends(call.frame, firsts)
    return [_TOTALS[call.function](column[low:high]) for low, high in ends]


def _firsts(ranked: list[tuple[object, ...]]) -> list[int]:
    """For each row, the place of the first row of equal rank."""
    found: list[int] = []
    for place, rank in enumerate(ranked):
        found.append(found[-1] if place and ranked[place - 1] == rank else place)
    return found


def _ends(frame: Frame, firsts: list[int]) -> list[tuple[int, int]]:
    size = len(firsts)
    if frame.rows:
        return [
            (
                0 if frame.start is None else min(max(place + frame.start, 0), size),
                size if frame.end is None else min(max(place + frame.end + 1, 0), size),
            )
            for place in range(size)
        ]
    after = _peers_end(firsts)
    return [
        (0 if frame.start is None else firsts[place], size if frame.end is None else after[place])
        for place in range(size)
    ]


def _peers_end(firsts: list[int]) -> list[int]:
    last = dict(zip(firsts, range(1, len(firsts) + 1), strict=True))
    return [last[first] for first in firsts]


def _buckets(firsts: list[int], count: int) -> list[int]:
    size, more = divmod(len(firsts), count)
    edge = more * (size + 1)
    return [
        place // (size + 1) + 1 if place < edge else more + (place - edge) // max(size, 1) + 1
        for place in range(len(firsts))
    ]


def _dense(firsts: list[int]) -> list[int]:
    numbers = {first: number for number, first in enumerate(sorted(set(firsts)), 1)}
    return [numbers[first] for first in firsts]


_RANKS: dict[str, Callable[[list[int], int], list[Any]]] = {
    "row_number": lambda firsts, _: list(range(1, len(firsts) + 1)),
    "rank": lambda firsts, _: [first + 1 for first in firsts],
    "dense_rank": lambda firsts, _: _dense(firsts),
    "percent_rank": lambda firsts, _: [first / max(len(firsts) - 1, 1) for first in firsts],
    "cume_dist": lambda firsts, _: [end / len(firsts) for end in _peers_end(firsts)],
    "ntile": _buckets,
}


def _present(total: Callable[[list[Any]], object]) -> Callable[[Sequence[Any]], Any]:
    """An aggregate of the values that are there; missing if there is none."""

    def of(values: Sequence[Any]) -> Any:
        known = [value for value in values if value is not None]
        return total(known) if known else None

    return of


_TOTALS: dict[str, Callable[[Sequence[Any]], Any]] = {
    "count": lambda values: sum(value is not None for value in values),
    "sum": _present(sum),
    "avg": _present(lambda values: sum(values) / len(values)),
    "min": _present(min),
    "max": _present(max),
    "median": _present(median),
    "first_value": lambda values: values[0] if values else None,
    "last_value": lambda values: values[-1] if values else None,
}
