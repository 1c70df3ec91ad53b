"""Microaggregation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import ConfigDict, Field, model_validator

from sfumato.arrays import Array
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Kind, Role, Schema
from sfumato.errors import BadParameter, NotApplicable, TooFewRows
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.masking.channel import IMPOSSIBLE, PublicKnowledge, StepChannel, TableChannel, as_numbers, rounded
from sfumato.masking.methods._grouping import (
    NUMBER_LIKE,
    ColumnGroup,
    Groups,
    RecordSpace,
    aggregate,
    common_ancestor,
    draw_centroids,
    group_rows,
    memberships,
)
from sfumato.masking.methods._masking import Masking, Rows, fitting, refuse_not_finite, weights_of
from sfumato.release import Change

if TYPE_CHECKING:
    from sfumato.engines.stored_table import StoredTable

_UNIVARIATE = frozenset({"individual", "optimal"})
_QUADRATIC = frozenset({"mdav", "v-mdav"})
"""Algorithms whose time grows with the square of the rows."""
_MOST_ENTRIES = 20_000_000
"""Entries of a table of fuzzy memberships."""
_MOST_ROWS = 3_000_000
"""Rows that these algorithms take on in a file larger than memory: about an hour of CPU time for ten columns."""


class Microaggregate(Masking):
    """Replace the values of groups of at least k similar records by the group's mean, median or most frequent category.

    Preserves column means (exactly, with the mean and without weights or rounding to dates) and, the more the smaller k
    is, covariances; it lowers variances. If one group of columns contains all quasi-identifiers, every released
    combination is shared by k records, so the release is k-anonymous in them. With several groups of columns, or column
    by column (``individual``, ``optimal``), it is not: an attacker who knows k intersects the groups. ``fuzzy`` draws
    each value at random from the nearby groups, which hampers that intersection and gives up the exact means and
    k-anonymity.

    Distances are Euclidean on standardized numbers; the distance of categories is defined by their hierarchy (0 to 1),
    so mixed tables work. Records with missing values are grouped with those that have the same missing columns; if
    fewer than k records share a pattern, their other values in the group become missing too. Whole numbers become
    decimal if the mean is. A table (or stratum) of fewer than k records is refused.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"pay": [1, 2, 3, 101, 102, 103]})),
    ...                     Schema(columns={"pay": Column(role="quasi")}))
    >>> Microaggregate(k=3).apply(people, Context(rng=Rng(1))).table.frame["pay"].to_list()
    [2.0, 2.0, 2.0, 102.0, 102.0, 102.0]
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["k"]}, {"required": ["groups"]}]})

    kinds = frozenset(Kind)
    simulable = True
    draws = False
    stronger = {"k": "more"}
    main = "k"
    examples = (
        {"k": 3},
        {"k": 3, "algorithm": "v-mdav"},
        {"k": 4, "algorithm": "optimal"},
        {"k": 3, "algorithm": "individual", "aggregate": "median"},
        {"k": 3, "algorithm": "projection"},
        {"k": 3, "refine": True},
        {"k": 3, "categories": "generalize"},
        {"k": 3, "fuzzy": 1.5},
    )
    reference = (
        "Domingo-Ferrer, Torra: Ordinal, continuous and heterogeneous k-anonymity through microaggregation (2005), "
        "doi:10.1007/s10618-005-0007-5; Hansen, Mukherjee: A polynomial algorithm for optimal univariate "
        "microaggregation (2003), doi:10.1109/TKDE.2003.1208022; Solanas, Martinez-Balleste: V-MDAV (COMPSTAT 2006); "
        "Torra: Fuzzy microaggregation for the transparency principle (2017), doi:10.1016/j.jal.2016.11.007"
    )

    k: Annotated[int, Field(ge=2)] | None = None
    """Minimum number of records per group. Not needed if ``groups`` gives one for each."""
    groups: tuple[ColumnGroup, ...] = ()
    """Groups of columns that are microaggregated separately, each with its own k:
    ``[{columns: [age, zip], k: 3}, {columns: [pay, rent], k: 8}]``. Default: all chosen columns form one group."""
    algorithm: Literal["mdav", "v-mdav", "projection", "individual", "optimal"] = "mdav"
    """``mdav``: groups of k around distant records. ``v-mdav``: the same with k to 2k-1 members. ``projection``: runs
    of k along the first principal component (fast, for millions of records). ``individual``: each column alone, runs
    of k in its order (individual ranking). ``optimal``: each column alone, least squared error (Hansen-Mukherjee)."""
    gamma: Annotated[float, Field(ge=0)] = 0.2
    """V-MDAV only: a group takes one more record if it is nearer than gamma times the distance to that record's nearest
    neighbour."""
    refine: bool = False
    """Improve the groups of ``mdav``, ``v-mdav`` or ``projection`` by local search: records move or change places, and
    neighbouring groups are cut anew, as long as that lowers the squared error. Every group keeps at least k members."""
    block: Annotated[int, Field(ge=4)] | None = None
    """Group within blocks of at most so many records, cut along the first principal component. ``mdav`` then takes time
    that grows with the number of records, and not with its square; k holds as without blocks, and the squared error is
    a little higher. At least 2k. Default: no blocks."""
    aggregate: Literal["mean", "median"] = "mean"
    """Aggregate of a group's numbers. The (lower) median is a data value; the mean need not be."""
    categories: Literal["mode", "generalize"] = "mode"
    """Aggregate of a group's categories: the most frequent one, or the lowest common label of the hierarchy."""
    standardize: bool = True
    """Whether to standardize numbers (mean 0, standard deviation 1) before computing distances."""
    weighted: bool = False
    """Whether means are weighted by the weight column (keeps weighted means instead of plain ones)."""
    fuzzy: Annotated[float, Field(gt=1, le=5)] | None = None
    """Fuzziness m of the probabilistic variant: each value is drawn from nearby groups by membership
    d^(-2/(m-1)), each column by itself. Near 1: the nearest group; 2: spread out. Default: no randomness."""

    @model_validator(mode="after")
    def _complete(self) -> Microaggregate:
        if not self.groups and self.k is None:
            raise ValueError("k is required unless `groups` gives one for each group of columns")
        if self.refine and self.algorithm in _UNIVARIATE:
            raise ValueError(f"`refine` improves mdav, v-mdav and projection, not `{self.algorithm}`")
        if self.block is not None and self.block < 2 * max([self.k or 2, *(group.k for group in self.groups)]):
            raise ValueError("`block` must be at least 2k")
        named = [name for group in self.groups for name in group.columns]
        if self.groups and (self.columns is not None or self.k is not None):
            raise ValueError("give either `groups` (each with its k) or `columns` and `k`, not both")
        if len(set(named)) != len(named):
            raise ValueError("a column is in two of the `groups`")
        return self

    @classmethod
    def joint_columns(cls, published: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(names) for names, _ in published.get("groups", ()))

    @classmethod
    def restricted(cls, published: Mapping[str, object], columns: Collection[str]) -> dict[str, Any]:
        parameters = super().restricted(published, columns)
        if not parameters.get("groups"):
            return parameters
        parameters.pop("columns", None)
        groups = [
            {**group, "columns": [name for name in group["columns"] if name in columns]}
            for group in parameters["groups"]
        ]
        return {**parameters, "groups": [group for group in groups if group["columns"]]}

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        weights = data.schema.names(Role.WEIGHT) if self.weighted else ()
        beside = (*self.strata, *(name for name in weights if name in data.table.columns))
        tasks = self._tasks(data)
        if self.fuzzy is not None:  # one random stream for all columns
            return ((self, tuple(dict.fromkeys([*(name for names, _ in tasks for name in names), *beside]))),)
        return tuple(
            (self.model_copy(update={"groups": (), "columns": names, "k": k}), tuple(dict.fromkeys((*names, *beside))))
            for names, k in tasks
        )

    def apply_stored(self, table: StoredTable, context: Context) -> StoredChange:
        if self.algorithm in _QUADRATIC and not self.strata and self.block is None and table.rows > _MOST_ROWS:
            raise NotApplicable(
                f"microaggregate: `{self.algorithm}` takes time that grows with the square of the rows and can run "
                f"for hours on {table.rows:,} rows (at most {_MOST_ROWS:,}).",
                fix="Group within blocks (`block: 100000`) or `strata`, or use `algorithm: projection`.",
                step=self.part_name(),
            )
        return super().apply_stored(table, context)

    @classmethod
    def column_in_words(cls, published: Mapping[str, Any], column: str, declared: Column) -> str:
        if column not in published.get("columns", ()):
            return ""
        k = next((k for names, k in published.get("groups", ()) if column in names), "k")
        return f"average of groups of at least {k} similar records"

    def apply(self, data: Data, context: Context) -> Change:
        frame, strata, tasks = data.table.frame, self.parts(data), self._tasks(data)
        weights = weights_of(data) if self.weighted else None
        masked: dict[str, list[pl.Series]] = {name: [] for names, _ in tasks for name in names}
        rows_done: dict[str, list[Rows]] = {name: [] for name in masked}
        blanked = 0
        with context.progress.task("microaggregate", len(tasks) * len(strata)) as tick:
            for task, (names, k) in enumerate(tasks):
                for name in names:
                    if data.kind(name) in NUMBER_LIKE:
                        refuse_not_finite(frame.get_column(name))
                gaps = _gap_pattern(frame, names)
                for stratum, rows in enumerate(strata):
                    if len(rows) < k:
                        raise TooFewRows(
                            f"microaggregate: {'a stratum' if self.strata else 'the table'} has {len(rows)} rows, "
                            f"fewer than k = {k}.",
                            fix="Choose a smaller k, or coarser strata.",
                            rows=len(rows),
                        )
                    for number, part in enumerate(_same_gaps(rows, gaps)):
                        present = tuple(n for n in names if frame.get_column(n)[int(part[0])] is not None)
                        if not present:
                            continue
                        if len(part) < k:
                            blanked += len(part) * len(present)
                            for name in present:
                                masked[name].append(self._blank(data, name, len(part)))
                                rows_done[name].append(part)
                            continue
                        random = context.rng.child(task, stratum, number).generator if self.fuzzy else None
                        for name, values in self._mask(data, present, part, k, weights, random):
                            masked[name].append(values)
                            rows_done[name].append(part)
                    tick(1)
        new = [_assemble(frame.get_column(name), masked[name], rows_done[name]) for name in masked]
        public: dict[str, object] = {"columns": list(masked), "groups": [[list(names), k] for names, k in tasks]}
        table = data.table.with_frame(frame.with_columns(new))
        return Change(table=table, public=public, private={"cells_blanked_for_rare_gaps": blanked})

    @classmethod
    def channels(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """Fuzzy memberships: the groups are computed again from the known people, and each released value is the
        centroid of one of the groups near a person, with the probability of its membership."""
        step = cls.build(dict(published["parameters"]))
        if step.fuzzy is None:
            return super().channels(published, knowledge)
        channels: list[StepChannel] = []
        for names, k in published["groups"] if knowledge.complete and not step.strata and not step.weighted else ():
            if set(names) <= set(knowledge.people.columns):
                channels += step._memberships(tuple(names), k, knowledge)
        return tuple(channels)

    def _memberships(self, names: tuple[str, ...], k: int, knowledge: PublicKnowledge) -> list[StepChannel]:
        people = knowledge.people
        data = Data.of(Table(frame=people), Schema(columns={name: Column(role=Role.QUASI) for name in people.columns}))
        holes = any(people[name].null_count() for name in names)
        if holes or any(data.kind(name) not in NUMBER_LIKE for name in names):
            return []
        points = RecordSpace(data, names, np.arange(data.rows, dtype=np.uint32), standardize=self.standardize).points
        groups = group_rows(points, k, self.algorithm, self.gamma, refine=self.refine, block=self.block)
        assert self.fuzzy is not None
        near, share = memberships(points, groups, self.fuzzy, 2 * k)
        share = share / share.sum(axis=1, keepdims=True)
        rows, channels = knowledge.target_rows, list[StepChannel]()
        for name in names:
            centres = as_numbers(aggregate(people[name], data.kind(name), groups, self.aggregate, None))
            labels, code = np.unique(rounded(centres), return_inverse=True)
            seen = rounded(as_numbers(knowledge.released[name]))
            place = np.minimum(np.searchsorted(labels, np.nan_to_num(seen)), len(labels) - 1)
            if not np.array_equal(labels[place], seen) or len(rows) * len(labels) > _MOST_ENTRIES:
                return []  # other groups, or steps that changed the values again
            table = np.zeros((data.rows, len(labels)))
            np.add.at(table, (np.arange(data.rows)[:, None], code[near]), share)
            channels.append(
                TableChannel(
                    columns=(name,),
                    known=np.arange(len(rows)),
                    released=place.astype(np.int64),
                    log=np.log(np.maximum(table, np.exp(IMPOSSIBLE)))[rows],
                    weight=np.full(len(rows), 1 / len(rows)),
                )
            )
        return channels

    def _tasks(self, data: Data) -> list[tuple[tuple[str, ...], int]]:
        """The columns that are grouped together, and the k of each group."""
        if self.groups:
            tasks = [(fitting(data, g.columns, self.kinds, self.part_name(), self.strata), g.k) for g in self.groups]
        else:
            assert self.k is not None
            tasks = [(self._names(data), self.k)]
        if self.algorithm in _UNIVARIATE:
            tasks = [((name,), k) for names, k in tasks for name in names]
            self._refuse_categories(data, tasks)
        return tasks

    def _names(self, data: Data) -> tuple[str, ...]:
        kinds = NUMBER_LIKE if self.algorithm in _UNIVARIATE and self.columns is None else self.kinds
        return fitting(data, self.columns, kinds, self.part_name(), self.strata)

    def _refuse_categories(self, data: Data, tasks: list[tuple[tuple[str, ...], int]]) -> None:
        for (name, *_), _k in tasks:
            if data.kind(name) not in NUMBER_LIKE:
                raise BadParameter(
                    f"microaggregate: `{name}` is {data.kind(name)} and has no order for `{self.algorithm}`.",
                    fix="Use mdav for categories, or leave the column out.",
                )

    def _mask(
        self,
        data: Data,
        names: tuple[str, ...],
        rows: Rows,
        k: int,
        weights: Any,
        random: np.random.Generator | None,
    ) -> list[tuple[str, pl.Series]]:
        points = RecordSpace(data, names, rows, standardize=self.standardize).points
        groups = group_rows(points, k, self.algorithm, self.gamma, refine=self.refine, block=self.block)
        taken: list[Groups] = [groups] * len(names)
        if self.fuzzy is not None and random is not None:
            taken = draw_centroids(points, groups, self.fuzzy, 2 * k, len(names), random)
        answer = []
        for name, take in zip(names, taken, strict=True):
            series, kind = data.table.column(name).gather(rows), data.kind(name)
            if kind not in NUMBER_LIKE and self.categories == "generalize":
                centres = common_ancestor(data, name, rows, groups)
            else:
                centres = aggregate(series, kind, groups, self.aggregate, None if weights is None else weights[rows])
            answer.append((name, centres.gather(take)))
        return answer

    def _blank(self, data: Data, name: str, count: int) -> pl.Series:
        return pl.Series(name, [None] * count, dtype=data.table.column(name).dtype)


def _gap_pattern(frame: pl.DataFrame, names: tuple[str, ...]) -> Array | None:
    """A code per row for its pattern of missing columns; None if nothing is missing."""
    holey = [name for name in names if frame.get_column(name).null_count()]
    if not holey:
        return None
    pattern = frame.select(pl.struct(pl.col(name).is_null() for name in holey).rank("dense"))
    return pattern.to_series().to_numpy()


def _same_gaps(rows: Rows, gaps: Array | None) -> list[Rows]:
    if gaps is None:
        return [rows]
    here = gaps[rows]
    return [rows[here == value] for value in np.unique(here)]


def _assemble(original: pl.Series, pieces: list[pl.Series], rows: list[Rows]) -> pl.Series:
    """Assemble the pieces by row; rows without a piece are missing."""
    if not pieces:
        return original
    dtype = next((p.dtype for p in pieces if p.dtype != original.dtype), original.dtype)
    values = pl.concat([piece.cast(dtype).alias(original.name) for piece in pieces])
    places = np.full(len(original), len(values), dtype=np.uint32)
    places[np.concatenate(rows)] = np.arange(len(values), dtype=np.uint32)
    return values.extend(pl.Series(original.name, [None], dtype=dtype)).gather(places)
