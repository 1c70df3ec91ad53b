"""Microaggregation of people by their items, with a semantic distance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Ints
from sfumato.data.row_codes import sorted_codes
from sfumato.dataset import Data
from sfumato.dataset.bound_hierarchy import BoundHierarchy, Codes
from sfumato.errors import NotApplicable, WrongKind
from sfumato.events.common_events import common_events
from sfumato.events.item_sets import MinUnits, unit_column
from sfumato.events.unit_check import unit_verdict
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._grouping import group_rows
from sfumato.release import Change, Verdict
from sfumato.rng import Rng
from sfumato.wording import counted

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

    report_phrase = "replaced by common events of {k} similar people"
    simulable = False
    keeps_rows = False
    covers_people = True
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

    def apply(self, data: Data, context: Context) -> Change:
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
        frame, row = data.table.frame, None
        if frame.get_column(self.item).null_count():
            row = np.flatnonzero(frame.get_column(self.item).is_not_null().to_numpy())
            frame = frame[row]
        units, _ = sorted_codes(frame.get_column(unit))
        people = int(units.max()) + 1 if len(units) else 0
        if people < self.k:
            raise NotApplicable(
                f"microaggregate-units: {counted(people, 'unit')} with items cannot be made {self.k} alike.",
                fix="Use a smaller k.",
            )
        hierarchy = data.bound_hierarchy(self.item)
        leaf = hierarchy.encode(frame.get_column(self.item))
        points = profiles(units, leaf, hierarchy, people, context.rng.child("projection"))
        groups = group_rows(points, self.k, "mdav", 0.2, block=max(_BLOCK, 2 * self.k)).astype(np.int64)
        numbers = [frame.get_column(name).to_physical().cast(pl.Float64).to_numpy() for name in self.columns]
        taken, chosen, means = common_events(units, groups, leaf, len(hierarchy.leaves), numbers)
        masked = {unit: frame.get_column(unit).gather(taken), self.item: hierarchy.decode(chosen, 0)}
        for name, values in zip(self.columns, means, strict=True):
            masked[name] = _typed(values, frame.get_column(name))
        rows = taken if row is None else row[taken]
        return Change(
            table=data.table.with_frame(pl.DataFrame(masked)),
            rows=rows,
            public={"columns": [self.item, *self.columns], "unit": unit},
            private={"groups": int(groups.max()) + 1, "rows_removed": data.rows - len(taken)},
        )

    @classmethod
    def verify_release(cls, published: Mapping[str, object], release: pl.DataFrame) -> tuple[Verdict, ...]:
        return (unit_verdict(published, release),)


def profiles(units: Ints, leaf: Codes, hierarchy: BoundHierarchy, people: int, rng: Rng) -> npt.NDArray[np.float64]:
    """A point per person: the shares of their events by label, over all levels below the root, randomly projected.

    A random projection preserves distances up to a small factor (Johnson and Lindenstrauss). Levels with too many
    labels are hashed to fewer. The last coordinate is the logarithm of the number of events.
    """
    draw = rng.generator
    size = np.bincount(units, minlength=people).astype(np.float64)
    points = np.zeros((people, _DIMENSIONS + 1))
    levels = hierarchy.levels[:-1] if hierarchy.levels[-1].size == 1 and hierarchy.height else hierarchy.levels
    # the sum of an item's coordinates over its labels, so that events are read once
    place = np.zeros((len(hierarchy.leaves), _DIMENSIONS))
    for level in levels:
        axes = draw.normal(0, 1 / np.sqrt(_DIMENSIONS), (min(level.size, _MOST_LABELS), _DIMENSIONS))
        place += axes[level.codes % _MOST_LABELS]
    for axis in range(_DIMENSIONS):
        points[:, axis] = np.bincount(units, weights=place[leaf, axis], minlength=people) / size
    points[:, -1] = np.log(size)
    return points


def _typed(values: npt.NDArray[np.float64], like: pl.Series) -> pl.Series:
    """Means as numbers or dates; NaN is missing."""
    series = pl.Series(like.name, values).fill_nan(None)
    if like.dtype.is_temporal():
        return series.round(0).cast(like.to_physical().dtype).cast(like.dtype)
    return series
