"""From groups that an engine counted to the compressed table that searches and models work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.data.table import Table
from tacit.errors import NotApplicable
from tacit.protect.classes import Classes, Tracked, compress, number_rows
from tacit.protect.judge import classes_as_shown
from tacit.protect.model import PrivacyModel
from tacit.schema import Column, Dataset, Role, Schema

__all__ = ["ROWS", "Counted", "compressed", "shown", "tracked_columns"]

ROWS = "rows"
"""Name of the column of counts in a counted frame; the others are called ``c0``, ``c1``, ... and renamed by callers."""


class Counted:
    """A table in counts: its quasi-identifier combinations, and for some columns those with their values."""

    def __init__(self, schema: Schema, quasi: Sequence[str], frames: Mapping[str | None, pl.DataFrame], tally: str):
        self.quasi, self.tally = tuple(quasi), tally
        self.frames = dict(frames)
        """By tracked column (None: the quasi-identifiers alone): distinct combinations with their counts."""
        self.schema = schema

    def data(self, name: str | None) -> Dataset:
        """One of the frames as a data set of distinct combinations."""
        wanted = (*self.quasi, *(() if name is None else (name,)))
        columns = {column: self.schema.column(column) for column in wanted}
        if name is not None and columns[name].role is not Role.SENSITIVE:
            columns[name] = Column(role=Role.SENSITIVE, kind=columns[name].kind, hierarchy=columns[name].hierarchy)
        return Dataset(table=Table(frame=self.frames[name].select(wanted)), schema=Schema(columns=columns))

    def counts(self, name: str | None) -> npt.NDArray[np.int64]:
        return self.frames[name].get_column(self.tally).to_numpy().astype(np.int64)


def tracked_columns(models: Sequence[PrivacyModel], sensitive: Sequence[str], target: str | None) -> tuple[str, ...]:
    """Columns whose values must be counted inside classes: those the models and the metric speak of.

    Others are not counted, because a count by a column of many values is as long as the table itself.
    """
    wanted: list[str] = []
    for model in models:
        if "column" in type(model).model_fields:
            named = getattr(model, "column", None)
            wanted.extend([named] if named is not None else sensitive)
    return tuple(dict.fromkeys([*wanted, *([target] if target is not None else [])]))


def refuse_overlap(schema: Schema, data: Dataset) -> None:
    """Refuse empty quasi-identifier cells that match every value: classes would overlap."""
    for name in data.quasi:
        if schema.column(name).missing != "category" and data.table.column(name).null_count():
            raise NotApplicable(
                f"Empty cells of `{name}` are declared `{schema.column(name).missing}`, so classes overlap, which the "
                "search over levels cannot handle.",
                fix="Declare them `missing: category`, or fill them first.",
                column=name,
            )


def compressed(counted: Counted, population: pl.DataFrame | None = None) -> Classes:
    """The compressed table, with the hierarchies of the schema."""
    first = next(iter(counted.frames))
    data = counted.data(first)
    table = compress(data, track=(), population=population)
    return _weighed(table, counted, first, {name: counted.data(name) for name in counted.frames if name is not None})


def shown(counted: Counted, population: pl.DataFrame | None = None) -> Classes:
    """The classes of a release by the values it shows, as :func:`tacit.protect.judge.classes_as_shown` gives them."""
    first = next(iter(counted.frames))
    datasets = {name: counted.data(name) for name in counted.frames}
    plain = Schema(columns={name: Column(role=Role.QUASI, missing=counted.schema.column(name).missing)
                            for name in counted.quasi})  # fmt: skip
    bare = Dataset(table=Table(frame=datasets[first].table.frame.select(counted.quasi)), schema=plain)
    table = classes_as_shown(bare, population=population)
    named = {name: data for name, data in datasets.items() if name is not None}
    return _weighed(table, counted, first, named, as_text=population is not None)


def _weighed(
    table: Classes, counted: Counted, first: str | None, tracked: Mapping[str, Dataset], *, as_text: bool = False
) -> Classes:
    """Replace counts of combinations by counts of rows."""
    of = {name: _classes_of(table, counted.frames[name], as_text=as_text) for name in {first, *tracked}}
    found = {}
    for name, data in tracked.items():
        ladder = data.ladder(name)
        width = len(ladder.leaves)
        inside = of[name] >= 0
        values = ladder.encode(data.table.column(name))[inside]
        pair, where = np.unique(of[name][inside] * width + values, return_inverse=True)
        sums = np.bincount(where, weights=counted.counts(name)[inside], minlength=len(pair)).astype(np.int64)
        cells, leaves = (pair // width).astype(np.int32), (pair % width).astype(np.int32)
        found[name] = Tracked(ladder=ladder, cells=cells, values=leaves, counts=sums)
    inside = of[first] >= 0
    sizes = np.bincount(of[first][inside], weights=counted.counts(first)[inside], minlength=len(table))
    return replace(table, sizes=sizes.astype(np.int64), tracked=found, of_row=None)


def _classes_of(table: Classes, frame: pl.DataFrame, *, as_text: bool) -> npt.NDArray[np.int64]:
    """The class of each combination of a frame; -1 where the table has none (rows that are suppressed)."""
    codes = []
    for ladder in table.ladders:
        series = frame.get_column(ladder.column)
        codes.append(ladder._find(series.cast(pl.String) if as_text else series).fill_null(-1).to_numpy() + 1)
    mine = [table.codes[:, i] + 1 for i in range(len(table.ladders))]
    both = [np.concatenate(pair) for pair in zip(mine, codes, strict=True)]
    number, count = number_rows(both, [len(ladder.leaves) + 1 for ladder in table.ladders])
    place = np.full(count, -1, dtype=np.int64)
    place[number[: len(table)]] = np.arange(len(table))
    return place[number[len(table) :]]
