"""Rank swapping."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.kernels import kernel
from sfumato.masking.base import Context
from sfumato.masking.channel import IMPOSSIBLE, PublicKnowledge, StepChannel, TableChannel, as_numbers
from sfumato.masking.methods._masking import ORDERED, Masking, Rows, refuse_not_finite, sorted_rows
from sfumato.release import Change

_TRIES = 64
"""Random draws before the free ranks are searched in order."""


_CELLS = 250
"""Cells of ranks in which swaps are counted for the channel."""
_TRANSITIONS = 1_000_000
"""Swaps that are counted."""
_MOST_ENTRIES = 4_000_000
"""Entries of a table of distinct values; beyond it, values are compared by cells of ranks."""


class RankSwap(Masking):
    """Swap each value with one of similar rank, column by column.

    Preserves every marginal distribution exactly (each column keeps its values in another order) and, for small p, most
    of the rank correlation. Extreme values stay in the file. Under the variants classic and literal, an attacker who
    knows p knows a window in which each true value lies, and intersecting the windows of several columns re-identifies
    people (Nin, Herranz and Torra). The other two variants have no such window, but an attacker who simulates them can
    still link by likelihood. Run attacks before you publish.

    The window is p percent of the values of the column (of the stratum), rounded down, at least 1 rank; with p = 100
    any partner is possible. Missing values stay in place. A value without a partner stays too; the private report
    counts them.

    >>> import polars as pl
    >>> from sfumato.data.table import Table
    >>> from sfumato.masking.base import Context
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Data, Schema
    >>> people = Data.of(Table(frame=pl.DataFrame({"age": list(range(20, 60))})),
    ...                     Schema(columns={"age": Column(role="quasi")}))
    >>> masked = RankSwap(p=10).apply(people, Context(rng=Rng(1))).table.frame["age"]
    >>> int((masked - people.table.frame["age"]).abs().max()), masked.sort().equals(people.table.frame["age"])
    (4, True)
    """

    report_phrase = "values swapped within {p:g}% of the ranks"
    kinds = ORDERED
    simulable = True
    stronger = {"p": "more"}
    independent_columns = True
    main = "p"
    examples = (
        {"p": 5},
        {"p": 10, "variant": "literal"},
        {"p": 10, "variant": "p-buckets"},
        {"p": 10, "variant": "p-distribution"},
    )
    reference = (
        "Nin, Herranz, Torra: Rethinking rank swapping to decrease disclosure risk. Data & Knowledge Engineering 64 "
        "(2008), doi:10.1016/j.datak.2007.07.006; Moore: Controlled data-swapping techniques (1996)"
    )

    p: Annotated[float, Field(gt=0, le=100)]
    """Window as a *percentage* of the rows, not a fraction: 5 means 5 % (sdcMicro's rankSwap calls this P=0.05)."""
    variant: Literal["classic", "literal", "p-buckets", "p-distribution"] = "classic"
    """``classic``: partner uniform among the free ranks within p percent above. ``literal``: the published loop as it
    is written, where the partner is uniform among all ranks within p percent above, also those swapped before; values
    move less far, and more people are found. ``p-buckets``: ranks are cut into
    buckets of p percent; the partner's bucket lies s buckets above with probability proportional to 2^-(s+1).
    ``p-distribution``: the distance to the partner is Normal with mean and standard deviation p/2 percent."""

    def apply(self, data: Data, context: Context) -> Change:
        names, strata = self.chosen(data), self.parts(data)
        frame = data.table.frame
        stratum = np.empty(data.rows, dtype=np.uint32)
        if len(strata) > 1:
            for number, rows in enumerate(strata):
                stratum[rows] = number
        masked, kept = [], {}
        for name in names:
            series = frame.get_column(name)
            refuse_not_finite(series)
            order, offsets = _sorted_rows(series, stratum if len(strata) > 1 else None)
            source, alone = self._partners(offsets, context.rng.child(name).generator)
            index = np.arange(data.rows, dtype=np.uint32)
            index[order] = order[source]
            masked.append(series.gather(index))
            kept[name] = alone
        return Change(
            table=data.table.with_frame(frame.with_columns(masked)),
            public=self.public_columns(names),
            private={"values_without_partner": kept},
        )

    @classmethod
    def channels(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """Ranks to ranks. The release has the values of the original, so that the rank of a known value is known.

        How often one rank is swapped with another does not depend on the values. It is counted in many rounds of the
        algorithm on ranks alone, in cells of ranks (:func:`rank_transitions`).
        """
        step = cls.build(dict(published["parameters"]))
        channels: list[StepChannel] = []
        for name in published["columns"]:
            if step.strata or name not in knowledge.targets.columns:
                continue
            known, released = (as_numbers(frame[name]) for frame in (knowledge.targets, knowledge.released))
            ordered = np.sort(released[np.isfinite(released)])
            if len(ordered) < 2:
                continue
            ranks = _RankCells(ordered, rank_transitions(step.p, step.variant, len(ordered)))
            table, rows, columns = ranks.table(known, released)
            # The values of everybody are those released: with those of a few known people alone, a released value
            # that only they could have would seem likely for anybody.
            weight = np.bincount(ranks.codes(ordered, rows), minlength=len(table)).astype(np.float64)
            channels.append(
                TableChannel(
                    columns=(name,),
                    known=ranks.codes(known, rows),
                    released=ranks.codes(released, columns),
                    log=table,
                    weight=weight / max(weight.sum(), 1.0),
                )
            )
        return tuple(channels)

    def _partners(self, offsets: npt.NDArray[np.int64], random: np.random.Generator) -> tuple[Rows, int]:
        """For each sorted position, the position its new value comes from, and the number of unchanged values."""
        source = np.arange(offsets[-1], dtype=np.uint32)
        alone = 0
        for start, stop in pairwise(offsets):
            part = source[start:stop]
            window = max(1, int(len(part) * self.p / 100 + 1e-9))
            match self.variant:
                case "classic":
                    alone += _classic(part, window, random)
                case "literal":
                    alone += _literal(part, window, random)
                case "p-buckets":
                    alone += _buckets(part, window, random)
                case "p-distribution":
                    alone += _distribution(part, window, random)
        return source, alone


@lru_cache(maxsize=8)
def rank_transitions(p: float, variant: str, count: int) -> npt.NDArray[np.float64]:
    """The probability that a value of one cell of ranks (row) is replaced by one of another (column)."""
    step = RankSwap.build({"p": p, "variant": variant})
    cells = min(count, _CELLS)
    cell = (np.arange(count) * cells) // count
    total = np.zeros((cells, cells))
    random = np.random.default_rng(0)
    for _ in range(max(1, _TRANSITIONS // count)):
        source = step._partners(np.array([0, count]), random)[0]
        total += np.bincount(cell * cells + cell[source], minlength=cells * cells).reshape(cells, cells)
    smooth = total + 1e-6 * total.sum() / cells**2
    return np.asarray(smooth / smooth.sum(axis=1, keepdims=True))


class _RankCells:
    """The sorted values of a column, and the transitions between cells of their ranks."""

    def __init__(self, ordered: npt.NDArray[np.float64], transitions: npt.NDArray[np.float64]) -> None:
        self._ordered = ordered
        self._cells = len(transitions)
        share = transitions / len(transitions)
        self._sums = np.zeros((len(share) + 1, len(share) + 1))
        self._sums[1:, 1:] = share.cumsum(axis=0).cumsum(axis=1)

    def codes(self, values: npt.NDArray[np.float64], labels: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The position of each value among these labels; the last one for missing values."""
        place = np.clip(np.searchsorted(labels, np.nan_to_num(values), side="right") - 1, 0, len(labels) - 1)
        return np.where(np.isfinite(values), place, len(labels)).astype(np.int64)

    def table(
        self, known: npt.NDArray[np.float64], released: npt.NDArray[np.float64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """log P of each released label for each original one, with a last row and column for missing values, and the
        labels: the distinct values, or where there are too many the lowest values of cells.

        A label reaches to the next one, so the original's are all values that the release has, and not those of the
        known people alone.
        """
        rows, columns = (np.unique(side[np.isfinite(side)]) for side in (np.append(known, released), released))
        if len(rows) * len(columns) > _MOST_ENTRIES:
            rows = columns = np.unique(self._ordered[(np.arange(self._cells) * len(self._ordered)) // self._cells])
        upper = [np.append(labels[1:], np.inf) for labels in (rows, columns)]
        in_rows = self._between(self._sums, rows, upper[0])
        mass = self._between(in_rows.T, columns, upper[1]).T
        own = self._between(np.arange(self._cells + 1)[:, None] / self._cells, rows, upper[0])
        table = np.full((len(rows) + 1, len(columns) + 1), IMPOSSIBLE)
        table[:-1, :-1] = np.log(np.maximum(mass / own, np.exp(IMPOSSIBLE)))
        table[-1, -1] = 0.0
        return table, rows, columns

    def _between(
        self, sums: npt.NDArray[np.float64], low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Differences of cumulated sums between the ranks of values; a value that does not occur counts as a rank."""
        first = np.searchsorted(self._ordered, low, side="left").astype(np.float64)
        last = np.searchsorted(self._ordered, high, side="left").astype(np.float64)
        last = np.maximum(last, first + 1)
        scale = self._cells / len(self._ordered)
        return _at(sums, np.minimum(last * scale, self._cells)) - _at(
            sums, np.minimum(first * scale, self._cells - scale)
        )


def _at(sums: npt.NDArray[np.float64], place: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rows of a table at fractional positions, interpolated."""
    below = np.minimum(place.astype(np.int64), len(sums) - 2)
    part = (place - below)[:, None]
    return np.asarray((1 - part) * sums[below] + part * sums[below + 1])


def _sorted_rows(series: pl.Series, stratum: Rows | None) -> tuple[Rows, npt.NDArray[np.int64]]:
    """Numbers of the rows that have a value, by stratum and then by value, and where each stratum starts."""
    count = len(series) - series.null_count()
    if stratum is None:
        return sorted_rows(series), np.array([0, count])
    frame = (
        pl.DataFrame({"stratum": stratum, "value": series}).with_row_index("row").filter(pl.col("value").is_not_null())
    )
    frame = frame.sort("stratum", "value", maintain_order=True)
    starts = np.flatnonzero(np.diff(frame["stratum"].to_numpy(), prepend=-1)) if count else np.array([0])
    return frame["row"].to_numpy(), np.append(starts, count)


@kernel()
def _swap(source: Rows, free: npt.NDArray[np.bool_], i: int, j: int) -> None:  # pragma: no cover - compiled
    source[i], source[j] = source[j], source[i]
    free[i] = False
    free[j] = False


@kernel()
def _classic(source: Rows, window: int, random: np.random.Generator) -> int:  # pragma: no cover - compiled
    n = len(source)
    free = np.ones(n, dtype=np.bool_)
    alone = 0
    for i in range(n):
        if not free[i]:
            continue
        last = min(n - 1, i + window)
        partner = -1
        for _ in range(_TRIES):
            if last == i:
                break
            at = i + 1 + int(random.random() * (last - i))
            if free[at]:
                partner = at
                break
        if partner < 0:
            # Few free ranks are left in the window: choose one of them uniformly by one pass (reservoir of one).
            seen = 0
            for at in range(i + 1, last + 1):
                if free[at]:
                    seen += 1
                    if random.random() * seen < 1.0:
                        partner = at
        if partner < 0:
            alone += 1
        else:
            _swap(source, free, i, partner)
    return alone


@kernel()
def _literal(source: Rows, window: int, random: np.random.Generator) -> int:  # pragma: no cover - compiled
    # A value that came up from i and is exchanged again goes to a rank between i and its place: all stay in the window.
    n = len(source)
    free = np.ones(n, dtype=np.bool_)
    for i in range(n - 1):
        if free[i]:
            last = min(n - 1, i + window)
            _swap(source, free, i, i + 1 + int(random.random() * (last - i)))
    return int(n > 0 and free[n - 1])


@kernel()
def _buckets(source: Rows, size: int, random: np.random.Generator) -> int:  # pragma: no cover - compiled
    n = len(source)
    count = (n + size - 1) // size
    # members holds the free ranks of each bucket at its front; place says where in members a rank stands.
    members = np.arange(n, dtype=np.uint32)
    place = np.arange(n, dtype=np.uint32)
    left = np.empty(count, dtype=np.int64)
    for b in range(count):
        left[b] = min(n, (b + 1) * size) - b * size
    free = np.ones(n, dtype=np.bool_)
    alone = 0
    for i in range(n):
        if not free[i]:
            continue
        own = i // size
        _remove(members, place, left, i, own, size)
        # Weights 1/2, 1/4, ... over the buckets from the own one on that still have a free rank.
        total = 0.0
        weight = 0.5
        for b in range(own, min(count, own + 60)):
            if left[b] > 0:
                total += weight
            weight *= 0.5
        if total == 0.0:
            far = -1
            for b in range(own, count):
                if left[b] > 0:
                    far = b
                    break
            if far < 0:
                alone += 1
                free[i] = False
                continue
            chosen = far
        else:
            mark = random.random() * total
            weight = 0.5
            chosen = -1
            for b in range(own, min(count, own + 60)):
                if left[b] > 0:
                    chosen = b
                    mark -= weight
                    if mark < 0:
                        break
                weight *= 0.5
        partner = members[chosen * size + int(random.random() * left[chosen])]
        _remove(members, place, left, partner, chosen, size)
        _swap(source, free, i, partner)
    return alone


@kernel()
def _remove(
    members: Rows, place: Rows, left: npt.NDArray[np.int64], rank: int, bucket: int, size: int
) -> None:  # pragma: no cover - compiled
    left[bucket] -= 1
    end = bucket * size + left[bucket]
    at = place[rank]
    moved = members[end]
    members[at] = moved
    place[moved] = at
    members[end] = rank
    place[rank] = end


@kernel()
def _distribution(source: Rows, window: int, random: np.random.Generator) -> int:  # pragma: no cover - compiled
    n = len(source)
    free = np.ones(n, dtype=np.bool_)
    # onward[i] leads to the nearest free rank at or above i (n: none); paths are shortened as they are walked.
    onward = np.arange(n + 1, dtype=np.int64)
    alone = 0
    for i in range(n):
        if not free[i]:
            continue
        free[i] = False
        onward[i] = i + 1
        partner = -1
        for _ in range(_TRIES):
            at = i + int(np.rint(window / 2 + window / 2 * random.standard_normal()))
            if 0 <= at < n and free[at]:
                partner = at
                break
        if partner < 0:
            at = i + 1
            while onward[at] != at:
                onward[at] = onward[onward[at]]
                at = onward[at]
            if at < n:
                partner = at
        if partner < 0:
            alone += 1
        else:
            onward[partner] = partner + 1
            _swap(source, free, i, partner)
    return alone
