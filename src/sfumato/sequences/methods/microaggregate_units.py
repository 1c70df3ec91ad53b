"""Microaggregation of people by their items, with a semantic distance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.errors import NotApplicable, WrongKind
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._grouping import group_rows
from sfumato.release import Change, State, Verdict
from sfumato.rng import Rng
from sfumato.schema import Dataset
from sfumato.schema.bound_hierarchy import BoundHierarchy
from sfumato.sequences.item_sets import Ints, MinUnits, unit_column
from sfumato.wording import counted

__all__ = ["MicroaggregateUnits"]

_DIMENSIONS = 12
_MOST_LABELS = 4096
_BLOCK = 2000


class MicroaggregateUnits(Step):
    """Replace the events of ``k`` similar people by the same events (semantic microaggregation).

    People are grouped by what they do on every level of the taxonomy of the items, so that two who search for different
    clubs of one sport are closer than two who share nothing; groups have at least ``k`` people (MDAV). All people of a
    group get the same events: the items of the group in proportion to their frequency, as many as its least active
    member has. Numbers and dates in ``columns`` are means over the group's events with that item. Other columns are
    dropped. Nobody can be told from ``k - 1`` others by any number of known events. Not truthful: a released event may
    be another member's. Frequencies of common items are preserved, rare ones disappear.

    The taxonomy is the ``hierarchy`` of the item column; without one, people are compared by equal items only.
    """

    did = "replaced by common events of {k} similar people"
    simulable = False
    stronger = {"k": "more"}
    examples = (
        {"item": "diagnosis", "person": "household", "k": 3},
        {"item": "zip", "person": "household", "k": 3, "columns": ["height"]},
    )
    reference = (
        "Batet, Erola, Sánchez, Castellà-Roca: Utility preserving query log anonymization via semantic "
        "microaggregation (2013), doi:10.1016/j.ins.2013.04.020"
    )

    item: str
    """Column with the items: products, queries, films, places."""
    k: MinUnits
    """Minimum number of people with the same released events."""
    columns: tuple[str, ...] = ()
    """Further columns of an event, numbers or dates, that are averaged. Others are dropped."""
    person: str | None = None
    """Column that identifies a person. Default: the recipe's ``unit``."""

    def apply(self, data: Dataset, context: Context) -> Change:
        unit = unit_column(data, self.person, self.part_name())
        data.table.require([self.item, *self.columns])
        for name in self.columns:
            dtype = data.table.frame.schema[name]
            if not (dtype.is_numeric() or dtype in (pl.Date, pl.Datetime)):
                raise WrongKind(
                    f"microaggregate-units: `{name}` holds neither numbers nor dates.",
                    fix="Leave it out of `columns`; it is then dropped.",
                    column=name,
                )
        row = np.flatnonzero(data.table.column(self.item).is_not_null().to_numpy())
        frame = data.table.frame[row]
        units = frame.get_column(unit).rank("dense").cast(pl.Int64).to_numpy() - 1
        people = int(units.max()) + 1 if len(units) else 0
        if people < self.k:
            raise NotApplicable(
                f"microaggregate-units: {counted(people, 'unit')} with items cannot be made {self.k} alike.",
                fix="Use a smaller k.",
            )
        hierarchy = data.bound_hierarchy(self.item)
        leaf = hierarchy.encode(frame.get_column(self.item)).astype(np.int64)
        points = profiles(units, leaf, hierarchy, people, context.rng.child("projection"))
        groups = group_rows(points, self.k, "mdav", 0.2, block=max(_BLOCK, 2 * self.k)).astype(np.int64)
        taken, chosen = _common_events(units, leaf, groups, people, len(hierarchy.leaves))
        masked = {unit: frame.get_column(unit).gather(taken), self.item: hierarchy.decode(chosen, 0)}
        keys = groups[units] * len(hierarchy.leaves) + leaf
        wanted = groups[units[taken]] * len(hierarchy.leaves) + chosen
        for name in self.columns:
            masked[name] = _means(frame.get_column(name), keys, wanted)
        return Change(
            table=data.table.with_frame(pl.DataFrame(masked)),
            rows=row[taken].astype(np.int64),
            public={"columns": [self.item, *self.columns], "unit": unit},
            private={"groups": int(groups.max()) + 1, "rows_removed": data.rows - len(taken)},
        )

    @classmethod
    def verify_release(cls, published: Mapping[str, Any], release: pl.DataFrame) -> tuple[Verdict, ...]:
        return (_unit_verdict(published, release),)


def profiles(units: Ints, leaf: Ints, hierarchy: BoundHierarchy, people: int, rng: Rng) -> npt.NDArray[np.float64]:
    """A point per person: the shares of their events by label, over all levels below the root, randomly projected.

    A random projection preserves distances up to a small factor (Johnson and Lindenstrauss). Levels with too many
    labels are hashed to fewer. The last coordinate is the logarithm of the number of events.
    """
    draw = rng.generator
    size = np.bincount(units, minlength=people).astype(np.float64)
    points = np.zeros((people, _DIMENSIONS + 1))
    levels = hierarchy.levels[:-1] if hierarchy.levels[-1].size == 1 and hierarchy.height else hierarchy.levels
    for level in levels:
        labels = level.codes[leaf] % _MOST_LABELS
        axes = draw.normal(0, 1 / np.sqrt(_DIMENSIONS), (min(level.size, _MOST_LABELS), _DIMENSIONS))
        for axis in range(_DIMENSIONS):
            points[:, axis] += np.bincount(units, weights=axes[labels, axis], minlength=people) / size
    points[:, -1] = np.log(size)
    return points


def _common_events(units: Ints, leaf: Ints, groups: Ints, people: int, leaves: int) -> tuple[Ints, Ints]:
    """Rows to keep, as many for every person of a group, and the item each of them gets."""
    size = np.bincount(units, minlength=people)
    order = np.lexsort((size, groups))
    first = np.unique(groups[order], return_index=True)[1]
    length = size[order[first]]  # events of the least active member
    total = np.bincount(groups[units], minlength=len(length))
    pairs, count = np.unique(groups[units] * leaves + leaf, return_counts=True)
    group = pairs // leaves
    quota = count * (length / total)[group]
    slots = np.floor(quota).astype(np.int64)
    left = length - np.bincount(group, weights=slots, minlength=len(length)).round().astype(np.int64)
    # largest remainders first; equal ones by the number of the item, which is the same for the whole group
    ranked = np.lexsort((pairs, -(quota - slots), group))
    position = np.empty(len(pairs), dtype=np.int64)
    position[ranked] = np.arange(len(pairs)) - np.searchsorted(group, group)[ranked]
    slots += position < left[group]
    events = np.repeat(pairs % leaves, slots)  # the events of all groups, one after the other
    begins = np.concatenate([[0], np.cumsum(length)])
    by_unit = np.argsort(units, kind="stable")
    rank = np.arange(len(units)) - np.searchsorted(units[by_unit], units[by_unit])
    kept = rank < length[groups[units[by_unit]]]
    taken = by_unit[kept]
    return taken, events[begins[groups[units[taken]]] + rank[kept]]


def _means(series: pl.Series, keys: Ints, wanted: Ints) -> pl.Series:
    """The mean of a column over all events with the same key, for each wanted key; null if none has a value."""
    number = series.to_physical().cast(pl.Float64)
    means = pl.DataFrame({"key": keys, "value": number}).group_by("key").agg(pl.col("value").mean())
    joined = pl.DataFrame({"key": wanted}).join(means, on="key", how="left", maintain_order="left")["value"]
    if series.dtype.is_temporal():
        return joined.round(0).cast(series.to_physical().dtype).cast(series.dtype).alias(series.name)
    return joined.alias(series.name)


def _unit_verdict(published: Mapping[str, Any], release: pl.DataFrame) -> Verdict:
    """Whether everybody shares all released events with at least k - 1 others."""
    model = "k-anonymity of units"
    try:
        k, unit = int(published["parameters"]["k"]), str(published["unit"])
        columns = [str(name) for name in published["columns"]]
    except (KeyError, TypeError, ValueError):
        return Verdict(model=model, state=State.NOT_CHECKED, reason="Its published parameters are not valid.")
    if unit not in release.columns or not set(columns) & set(release.columns):
        return Verdict(model=model, state=State.NOT_CHECKED, reason="The release lacks the unit or the items.")
    others = [name for name in release.columns if name != unit]
    texts = release.select(pl.col(unit), pl.concat_str([pl.col(n).cast(pl.String).fill_null("\x00") for n in others],
                                                       separator="\x01").alias("event"))  # fmt: skip
    events = texts.group_by(unit).agg(pl.col("event").sort().str.join("\x02"))
    sizes = events.group_by("event").len()["len"]
    smallest, few = int(sizes.min() or 0), int(sizes.filter(sizes < k).sum())  # type: ignore[arg-type]
    if not few:
        return Verdict(model=model, state=State.HOLDS, worst=smallest, wanted=k)
    reason = f"{counted(few, 'unit')} share their events with fewer than {k - 1} others."
    return Verdict(model=model, state=State.FAILS, worst=smallest, wanted=k, failing=few, reason=reason)
