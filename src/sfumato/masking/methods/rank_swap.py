"""Rank swapping."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.dataset import Data
from sfumato.kernels import kernel
from sfumato.masking.base import Context
from sfumato.masking.methods._masking import ORDERED, Masking, Rows, refuse_not_finite, sorted_rows
from sfumato.release import Change

__all__ = ["RankSwap"]

_TRIES = 64
"""Random draws before the free ranks are searched in order."""


class RankSwap(Masking):
    """Swap each value with one of similar rank, column by column.

    Preserves every marginal distribution exactly (each column keeps its values in another order) and, for small p, most
    of the rank correlation. Extreme values stay in the file. Under the classic variant, an attacker who knows p knows a
    window in which each true value lies, and intersecting the windows of several columns re-identifies people (Nin,
    Herranz and Torra). The other two variants have no such window, but an attacker who simulates them can still link by
    likelihood. Run attacks before you publish.

    The window is p percent of the values of the column (of the stratum), rounded down, at least 1 rank; with p = 100
    any partner is possible. Missing values stay in place. A value without a free partner stays too; the private report
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
    examples = ({"p": 5}, {"p": 10, "variant": "p-buckets"}, {"p": 10, "variant": "p-distribution"})
    reference = (
        "Nin, Herranz, Torra: Rethinking rank swapping to decrease disclosure risk. Data & Knowledge Engineering 64 "
        "(2008), doi:10.1016/j.datak.2007.07.006; Moore: Controlled data-swapping techniques (1996)"
    )

    p: Annotated[float, Field(gt=0, le=100)]
    """Window as a *percentage* of the rows, not a fraction: 5 means 5 % (sdcMicro's rankSwap calls this P=0.05)."""
    variant: Literal["classic", "p-buckets", "p-distribution"] = "classic"
    """``classic``: partner uniform among the free ranks within p percent above. ``p-buckets``: ranks are cut into
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
                case "p-buckets":
                    alone += _buckets(part, window, random)
                case "p-distribution":
                    alone += _distribution(part, window, random)
        return source, alone


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
