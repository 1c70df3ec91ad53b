"""Coarsening of times."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from sfumato.dataset import Data, Kind
from sfumato.masking.base import Context
from sfumato.masking.methods._masking import Masking
from sfumato.release import Change


class TruncateTimes(Masking):
    """Coarsen dates and times to the beginning of an hour, a day, a week, a month or a longer interval.

    Every point of a trajectory, every visit or search then stands for an interval. Truthful at that resolution. How
    much it protects must be measured: the number of points that single out a person falls slowly with the resolution
    (see the measure ``item-uniqueness``), so coarsen places too (``round``) or remove rare points (``suppress-items``).

    Missing values stay missing.

    >>> from datetime import datetime
    >>> from sfumato.data.table import Table
    >>> from sfumato.rng import Rng
    >>> from sfumato.dataset import Column, Schema
    >>> seen = pl.DataFrame({"at": [datetime(2024, 5, 1, 13, 47)]})
    >>> data = Data.of(Table(frame=seen), Schema(columns={"at": Column(role="quasi")}))
    >>> TruncateTimes(every="6h").apply(data, Context(rng=Rng(1))).table.frame["at"].to_list()
    [datetime.datetime(2024, 5, 1, 12, 0)]
    """

    report_phrase = "cut to intervals of {every}"
    simulable = True
    draws = False
    kinds = frozenset({Kind.DATE, Kind.DATETIME})
    independent_columns = True
    main = "every"
    examples = ({"every": "1w", "columns": ["birth"]}, {"every": "6h", "columns": ["birth"]})
    reference = "de Montjoye et al.: Unique in the crowd (2013), doi:10.1038/srep01376"

    every: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}(m|h|d|w|mo|q|y)$")]
    """Length of an interval: ``30m``, ``6h``, ``1d``, ``1w``, ``1mo``, ``1q``, ``1y``."""

    def apply(self, data: Data, context: Context) -> Change:
        names, frame = self.chosen(data), data.table.frame
        every = self.every
        masked = [
            frame.get_column(name).dt.truncate("1d" if frame.schema[name] == pl.Date and every[-1] in "mh" else every)
            for name in names
        ]
        return Change(table=data.table.with_frame(frame.with_columns(masked)), public=self.public_columns(names))
