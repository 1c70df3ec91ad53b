"""Date shifting."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.dataset import Data, Kind
from sfumato.errors import BadParameter, WrongKind
from sfumato.masking.base import Context, Step
from sfumato.masking.channel import IMPOSSIBLE, PublicKnowledge, StepChannel, TableChannel, as_numbers, image
from sfumato.masking.methods._masking import Masking, numbered
from sfumato.release import Change

_MOST_ENTRIES = 20_000_000
"""Entries of a table of distinct dates."""


class ShiftDates(Masking):
    """Shift all dates of a person by the same random number of days.

    Preserves the days between any two dates of the same person exactly (length of stay, age at treatment), and the time
    of day (in UTC for columns with a time zone, because of clock changes). Does not preserve the order of events of
    different people, nor season and weekday (``weekdays`` preserves the latter). Sequences of dates are not protected:
    an attacker who knows three intervals of a person finds them in the file, and one known date reveals the shift of
    all others.

    The shift is uniform over -days..days without 0. Missing values stay missing. Placeholder dates that many rows share
    (9999-12-31) would reveal the shift: dates that a shift could move out of the calendar are refused.

    >>> import polars as pl
    >>> from datetime import date
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> stay = pl.DataFrame({"who": [1, 2], "came": [date(2024, 5, 1)] * 2, "went": [date(2024, 5, 9)] * 2})
    >>> people = Data.of(Table(frame=stay),
    ...                     Schema(columns={"came": Column(role="quasi"), "went": Column(role="quasi")}))
    >>> masked = ShiftDates(days=30, person="who").apply(people, Context(rng=Rng(1))).table.frame
    >>> (masked["went"] - masked["came"]).dt.total_days().to_list(), (masked["came"] == stay["came"]).any()
    ([8, 8], False)
    >>> masked["came"].n_unique()
    2
    """

    report_phrase = "shifted by up to {days} days"
    kinds = frozenset({Kind.DATE, Kind.DATETIME})
    simulable = True
    stronger = {"days": "more"}
    main = "days"
    examples = ({"days": 180}, {"days": 28, "weekdays": True})
    reference = (
        "Hripcsak et al.: Preserving temporal relations in clinical data while maintaining privacy. JAMIA 23 (2016), "
        "doi:10.1093/jamia/ocw001"
    )

    days: Annotated[int, Field(ge=1, le=100_000)]
    """Largest shift in days, in either direction."""
    weekdays: bool = False
    """Whether shifts are whole weeks, which preserves weekdays (requires at least 7 days)."""
    person: str | None = None
    """Column that identifies a person. Default: the privacy unit of the schema, else every row is a person."""

    def column_passes(self, data: Data) -> tuple[tuple[Step, tuple[str, ...]], ...]:
        unit = self.person or data.schema.unit
        return ((self, tuple(dict.fromkeys((*self.chosen(data), *([] if unit is None else [unit]))))),)

    @classmethod
    def channels(cls, published: Mapping[str, Any], knowledge: PublicKnowledge) -> tuple[StepChannel, ...]:
        """All dates of a person have one offset: the days since the person's first date are released unchanged."""
        step = cls.build(dict(published["parameters"]))
        names = tuple(name for name in published["columns"] if name in knowledge.targets.columns)
        if not names:
            return ()
        columns: list[StepChannel] = []
        own, other = (
            np.column_stack([as_numbers(frame[name]) for name in names])
            for frame in (knowledge.targets, knowledge.released)
        )
        persons = knowledge.persons
        # Without all rows of a person the first date is not known; that of a row is.
        if persons is None or not knowledge.complete:
            persons = (np.arange(len(own)), np.arange(len(other))) if len(names) > 1 else None
        if persons is not None:
            since = [_since_first(*side) for side in ((own, persons[0]), (other, persons[1]))]
            frames = [pl.DataFrame({name: days[:, j] for j, name in enumerate(names)}) for days in since]
            columns.append(image(names, frames[0], frames[1]))
        for place, name in enumerate(names):
            labels = [np.unique(side[:, place][np.isfinite(side[:, place])]) for side in (own, other)]
            if len(labels[0]) * len(labels[1]) > _MOST_ENTRIES or not len(labels[1]):
                continue
            moved = labels[1][None, :] - labels[0][:, None]
            fits = (np.abs(moved) <= step.days) & (moved != 0) & ((moved % 7 == 0) | (not step.weekdays))
            log = np.full((len(labels[0]) + 1, len(labels[1]) + 1), IMPOSSIBLE)
            log[:-1, :-1][fits] = -np.log(2 * (step.days // (7 if step.weekdays else 1)))
            log[-1, -1] = 0.0
            codes = [
                np.where(np.isfinite(side[:, place]), np.searchsorted(label, np.nan_to_num(side[:, place])), len(label))
                for side, label in zip((own, other), labels, strict=True)
            ]
            weight = np.bincount(codes[0], minlength=len(log)) / len(own)
            columns.append(TableChannel(columns=(name,), known=codes[0], released=codes[1], log=log, weight=weight))
        return tuple(columns)

    def apply(self, data: Data, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        unit = self.person or data.schema.unit
        step = 7 if self.weekdays else 1
        reach = self.days // step
        if reach == 0:
            raise BadParameter("shift-dates: whole weeks need `days` of at least 7.")
        if self.strata:
            raise BadParameter("shift-dates: `strata` is not supported.", fix="Leave it out.")
        for name in names:
            _refuse_placeholders(frame.get_column(name), self.days)
        random = context.rng.generator
        if unit is None:
            people, count = np.arange(data.rows), data.rows
        else:
            data.table.require([unit])
            # rows without a person get shifts of their own: a common shift would link them
            rows, row = numbered(frame, [unit])
            first = pl.col(row).first().over(unit)
            person = pl.when(pl.col(unit).is_null()).then(pl.col(row)).otherwise(first)
            people = rows.select(person).to_series().to_numpy()
            count = data.rows
        shift = random.integers(1, reach + 1, count) * random.choice([-step, step], count)
        moved = pl.Series("shift", shift[people])
        masked = [pl.col(name) + pl.duration(days=pl.lit(moved)) for name in names]
        table = data.table.with_frame(frame.with_columns(masked))
        return Change(table=table, public=self.public_columns(names))


def _since_first(days: Floats, person: npt.NDArray[np.int64]) -> Floats:
    """Days since the first date of the person, over all columns."""
    with np.errstate(invalid="ignore"):
        low = np.nanmin(np.where(np.isnan(days), np.inf, days), axis=1)
    first = np.full(int(person.max(initial=-1)) + 1, np.inf)
    np.minimum.at(first, person[person >= 0], low[person >= 0])
    return np.asarray(days - np.where(person >= 0, first[person], low)[:, None])


def _refuse_placeholders(series: pl.Series, days: int) -> None:
    """Refuse a date that a shift could move out of the calendar: it is a placeholder such as 9999-12-31, whose shifted
    value would reveal the person's shift and thereby all true dates."""
    day = series.cast(pl.Date)
    first, last = date.min + timedelta(days=days), date.max - timedelta(days=days)
    outside = int(((day < first) | (day > last)).sum() or 0)
    if outside:
        raise WrongKind(
            f"shift-dates: {outside} dates of `{series.name}` lie so far off that a shift by {days} days leaves the "
            "years 1 to 9999. They look like stand-ins for `no date`, and would tell by how much a person was shifted.",
            fix="Make them missing (empty) first.",
            column=series.name,
            count=outside,
        )
