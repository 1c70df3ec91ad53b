"""Mondrian multidimensional partitioning: cut the table recursively as long as every part meets the models."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.dataset import Column, Data, Kind, Role, Schema
from sfumato.errors import BadParameter, NotApplicable, WrongKind
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.masking.search.mondrian.axes import Axes, Axis, axes_of
from sfumato.masking.search.mondrian.kernels import BY, cut_cells, extents
from sfumato.masking.search.partition_check import Conditions, columns_with_gaps, refuse_overlap
from sfumato.progress import Progress
from sfumato.release import Change

if TYPE_CHECKING:
    from sfumato.engines.stored_table import StoredTable

Codes = npt.NDArray[np.int32]

_MOST_COLUMNS = 62
"""Maximum number of columns: columns that were tried are bits of one integer."""
_ORDERED = (Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.DATETIME)


class Mondrian(Step):
    """Partition the rows into boxes, one column at a time, and release the range of values of each box.

    Numbers and dates are cut at the median, categories along their hierarchy (without one, in the order of their
    values). A cut is made only if every part still meets all models of the recipe, so the result meets them too. Keeps
    all rows and adapts to the density of the data. Values become ranges (``20–29``, ``[0.5, 1.5]``), groups, sets
    (``{a, b}``) or means. The ends of a range are data values.

    Greedy and deterministic; no bound on the distance to the optimum is given. Truthful, except with ``values: mean``.
    """

    report_phrase = "range of a group of similar records"
    truthful = True
    simulable = False
    coarsens = True
    tight_labels = True
    minimal_labels = True
    out_of_core = True
    examples = ({}, {"cuts": "relaxed", "values": "set", "choose": "widest"})
    reference = "LeFevre, DeWitt, Ramakrishnan (2006), Mondrian multidimensional k-anonymity, doi:10.1109/ICDE.2006.101"

    cuts: Literal["strict", "relaxed"] = "strict"
    """strict: rows with equal values stay together, so boxes do not overlap. relaxed: where that allows no cut, rows
    with the median value are shared out, and groups of a hierarchy that are too small are put together. Finer, but
    boxes overlap."""
    values: Literal["range", "mean", "set"] = "range"
    """Released form of numbers and dates in a box: range, mean, or set of values. Categories are released as the lowest
    common group of their hierarchy, or as a set."""
    choose: Literal["gain", "widest", "entropy"] = "gain"
    """The column to cut next: the one whose cut saves most information loss (``gain``), with the widest range in the
    box (``widest``, as in the original paper), or with the highest entropy."""
    weights: dict[str, Annotated[float, Field(ge=0, le=1e9)]] = {}
    """Weight of each column. Default: 1. A column of weight 0 is never cut."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        return ((self, (*data.quasi, *data.sensitive)),)

    def apply(self, data: Data, context: Context) -> Change:
        refuse_overlap(data.schema, columns_with_gaps(data), self.part_name())
        self._check_columns(data)
        plain = _without_number_bands(data)
        table = compress(plain)
        if self.cuts == "relaxed":
            table = _by_rows(table, plain)
        kinds = tuple(data.kind(name) for name in table.columns)
        boxes, labels, public, private = self._cut(table, kinds, context)
        assert table.of_row is not None
        of_row = boxes.of[table.of_row]
        frame = data.table.frame.with_columns([column.gather(of_row) for column in labels])
        return Change(table=data.table.with_frame(frame), public=public, private=private)

    def apply_stored(self, table: StoredTable, context: Context) -> StoredChange:
        if self.cuts == "relaxed":  # shares out rows, so it needs them
            return super().apply_stored(table, context)
        from sfumato.masking.stored_classes import count_for_models, with_class_labels

        data = table.empty
        self._check_columns(data)
        ordered = frozenset(name for name in data.quasi if data.kind(name) in _ORDERED)
        quasi, classes = count_for_models(table, context.class_models, without_hierarchy=ordered)
        missing = [column.name for column in quasi if column.values.null_count()]
        refuse_overlap(table.schema, missing, self.part_name())
        kinds = tuple(data.kind(name) for name in classes.columns)
        boxes, labels, public, private = self._cut(classes, kinds, context)
        labelled = with_class_labels(table, quasi, classes, boxes.of, labels)
        return StoredChange(table=labelled, public=public, private=private)

    def _check_columns(self, data: Data) -> None:
        unknown = [name for name in self.weights if name not in data.quasi]
        if unknown:
            raise BadParameter(
                f"mondrian: `{unknown[0]}` has a weight but is not a quasi-identifier.",
                fix=f"Quasi-identifiers: {', '.join(data.quasi)}.",
            )
        if len(data.quasi) > _MOST_COLUMNS:
            raise NotApplicable(
                f"mondrian takes at most {_MOST_COLUMNS} quasi-identifiers, not {len(data.quasi)}.",
                fix="Use `local-recode`, or give some columns another role.",
            )
        for name in data.quasi:
            if data.kind(name) in _ORDERED and Kind.of(data.table.column(name).dtype) not in _ORDERED:
                raise WrongKind(
                    f"mondrian: column `{name}` is declared {data.kind(name)} but holds text: an earlier step replaced "
                    "its values by labels.",
                    fix="Leave out that step, or run mondrian before it: mondrian alone meets the models.",
                    column=name,
                )

    def _cut(
        self, table: EquivalenceClasses, kinds: tuple[Kind, ...], context: Context
    ) -> tuple[_Boxes, list[pl.Series], dict[str, Any], dict[str, Any]]:
        """The boxes, what each shows of every column, and the public and the private outcome."""
        conditions = Conditions(table, context.class_models, method=self.part_name())
        weights = np.array([float(self.weights.get(name, 1.0)) for name in table.columns])
        axes = axes_of(table.hierarchies, kinds, weights)
        place = np.stack([axis.rank[table.codes[:, i]] for i, axis in enumerate(axes.axes)], axis=1)
        relaxed = self.cuts == "relaxed"
        boxes = _partition(place, table, conditions, axes, relaxed=relaxed, by=BY[self.choose], watch=context.progress)
        labels = [
            self._show(axis, place[:, i], boxes, i, table).alias(table.columns[i]) for i, axis in enumerate(axes.axes)
        ]
        public = {"columns": list(table.columns), "truthful": self.values != "mean"}
        private = {"suppressed": 0, "classes": boxes.count, "optimal": False, "ncp": _ncp(axes, boxes, table)}
        return boxes, labels, public, private

    def _show(self, axis: Axis, place: Codes, boxes: _Boxes, number: int, table: EquivalenceClasses) -> pl.Series:
        if axis.ordered and self.values == "mean":
            return axis.means(boxes.of, place, table.sizes, boxes.count)
        if self.values == "set" or not (axis.ordered or axis.by_hierarchy):
            return axis.sets(boxes.of, place)
        return axis.spans(boxes.low[:, number], boxes.high[:, number])


class _Boxes:
    """A finished partition: the box of each unit, and the first and last position of each box on each axis."""

    def __init__(self, unit: Ints, place: Codes, starts: Ints) -> None:
        ends = np.append(starts[1:], len(unit))
        self.count = len(starts)
        self.of = np.empty(len(unit), dtype=np.int64)
        self.of[unit] = np.repeat(np.arange(len(starts)), ends - starts)
        self.low, self.high = extents(place, starts, ends)


def _without_number_bands(data: Data) -> Data:
    """The table without hierarchies of numbers and dates, which may be cut anywhere."""
    columns = dict(data.schema.columns)
    for name in data.quasi:
        if data.kind(name) in _ORDERED:
            columns[name] = Column(role=Role.QUASI, kind=columns[name].kind, missing=columns[name].missing)
    return Data(table=data.table, schema=Schema(columns=columns, unit=data.schema.unit))


def _by_rows(table: EquivalenceClasses, data: Data) -> EquivalenceClasses:
    """One unit per row, so that rows with equal values can be separated."""
    assert table.of_row is not None
    rows = np.arange(len(table.of_row), dtype=np.int32)
    ones = np.ones(len(rows), dtype=np.int64)
    tracked = {
        name: replace(column, cells=rows, values=column.hierarchy.encode(data.table.column(name)), counts=ones)
        for name, column in table.tracked.items()
    }
    return replace(table, codes=table.codes[table.of_row], sizes=ones, tracked=tracked, of_row=rows.astype(np.intp))


def _partition(
    place: Codes,
    table: EquivalenceClasses,
    conditions: Conditions,
    axes: Axes,
    *,
    relaxed: bool,
    by: int,
    watch: Progress,
) -> _Boxes:
    least = conditions.least
    while True:
        boxes = _cut_all(place, table, conditions, axes, least=least, relaxed=relaxed, by=by, watch=watch)
        sizes = np.bincount(boxes.of, weights=table.sizes, minlength=boxes.count).astype(np.int64)
        if not conditions.about_table or boxes.count == 1 or conditions.table_holds(sizes):
            return boxes
        # a limit on an average is met once all boxes are large enough
        least += 1 + least // 8


def _cut_all(
    place: Codes,
    table: EquivalenceClasses,
    conditions: Conditions,
    axes: Axes,
    *,
    least: int,
    relaxed: bool,
    by: int,
    watch: Progress,
) -> _Boxes:
    """Cut in rounds: cut every open box once, evaluate all parts together, and undo cuts with a failing part."""
    count = len(place)
    place, weight, unit = place.copy(), table.sizes.copy(), np.arange(count)
    spare = np.empty_like(place), np.empty_like(weight), np.empty_like(unit)
    done: list[Ints] = []
    starts, ends = np.zeros(1, dtype=np.int64), np.array([count])
    tried = np.zeros(1, dtype=np.int64)
    threads = min(os.cpu_count() or 1, 4)
    longest = max(len(axis.leaf) for axis in axes.axes)
    with watch.task("cutting", count) as tick, ThreadPoolExecutor(threads) as pool:
        while len(starts):
            cut = np.zeros(count, dtype=np.bool_)
            chosen = np.empty(len(starts), dtype=np.int64)
            # shares of about equal work: boxes stand in the order of their units
            shares = np.unique(np.searchsorted(np.cumsum(ends - starts), np.linspace(0, 1, threads * 4 + 1)[1:-1]
                                               * int((ends - starts).sum())))  # fmt: skip
            edges = [0, *shares.tolist(), len(starts)]

            def work(a: int, b: int, starts: Ints = starts, ends: Ints = ends, tried: Ints = tried,
                     cut: object = cut, chosen: Ints = chosen) -> None:  # fmt: skip
                cut_cells(
                    starts[a:b], ends[a:b], tried[a:b], place, weight, unit, *spare, cut, chosen[a:b],
                    axes.hierarchical, axes.start, axes.groups, axes.loss, axes.position, axes.weight,
                    least, relaxed, by, longest,
                )  # fmt: skip

            list(pool.map(work, edges[:-1], edges[1:]))
            whole = chosen < 0
            done.append(starts[whole])
            tick(int((ends - starts)[whole].sum()))
            starts, ends, tried, chosen = starts[~whole], ends[~whole], tried[~whole], chosen[~whole]
            if not len(starts):
                break
            parents = _runs(starts, ends, cut)
            if conditions.sizes_only:
                good = np.ones(len(starts), dtype=np.bool_)
            else:
                good = _judge(parents, unit, conditions, len(starts))
            kept = good[parents.parent]
            again = ~good
            starts = np.concatenate([parents.starts[kept], starts[again]])
            ends = np.concatenate([parents.ends[kept], ends[again]])
            tried = np.concatenate([np.zeros(int(kept.sum()), np.int64), tried[again] | (1 << chosen[again])])
            order = np.argsort(starts)
            starts, ends, tried = starts[order], ends[order], tried[order]
    return _Boxes(unit, place, np.sort(np.concatenate(done)))


class _Runs:
    """Children of the cut boxes: where each begins and ends, and the number of its parent."""

    def __init__(self, starts: Ints, ends: Ints, parent: Ints) -> None:
        self.starts, self.ends, self.parent = starts, ends, parent


def _runs(starts: Ints, ends: Ints, cut: npt.NDArray[np.bool_]) -> _Runs:
    begins = np.flatnonzero(cut)
    parent = np.searchsorted(starts, begins, side="right") - 1
    last = np.append(parent[1:] != parent[:-1], True)
    finish = np.append(begins[1:], ends[-1])
    finish[last] = ends[parent[last]]
    return _Runs(begins, finish, parent)


def _judge(runs: _Runs, unit: Ints, conditions: Conditions, parents: int) -> npt.NDArray[np.bool_]:
    """Which cuts are valid: those whose children all meet the models."""
    table = conditions.table
    count = len(runs.starts)
    of = np.full(len(table), count, dtype=np.int64)
    lengths = runs.ends - runs.starts
    inside = np.repeat(runs.starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
    of[unit[inside]] = np.repeat(np.arange(count), lengths)
    good = np.ones(parents, dtype=np.bool_)
    step = table.blocks(count, conditions.columns)
    for begin in range(0, count, step):
        chosen = np.zeros(count + 1, dtype=np.bool_)
        chosen[begin : min(begin + step, count)] = True
        passed = conditions.passes(table.groups(of, count + 1, columns=conditions.columns, chosen=chosen))
        good[runs.parent[begin : begin + step][~passed]] = False
    return good


def _ncp(axes: Axes, boxes: _Boxes, table: EquivalenceClasses) -> float:
    """Mean normalized certainty penalty of a cell: the share of its axis that its box covers."""
    rows = np.bincount(boxes.of, weights=table.sizes, minlength=boxes.count)
    total = 0.0
    for i, axis in enumerate(axes.axes):
        low, high = boxes.low[:, i], boxes.high[:, i]
        if axis.by_hierarchy:
            level = np.zeros(len(low), dtype=np.intp)
            for codes in axis.groups[:-1]:
                level += codes[low] != codes[high]
            width = axes.loss[axes.start[i, level] + low]
        else:
            width = np.minimum(1.0, axis.position[high] - axis.position[low])
        total += float(width @ rows) / table.rows
    return total / len(axes.axes)
