"""Masking before learning: A(ρ(X)), where ρ is microaggregation, repeated after every change of the data."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.integral.encoding import Codes, ColumnEncoding, Encoding
from sfumato.integral.learner import Learner
from sfumato.integral.records import Records


class MicroaggregatedLearner(Learner):
    """A learner on microaggregated columns: every number is replaced by the mean of a group of similar ones.

    Each numeric feature is sorted and cut into groups of ``group`` records, the last one larger, and the group means
    are encoded as the learner's own encoding says. The groups change with the data, so that cells of this learner are
    records with the same values, not with the same codes.
    """

    learner: Learner
    """The algorithm A."""
    encoding: Encoding
    """Its encoding of the masked columns."""
    values: tuple[tuple[float, ...] | None, ...]
    """The values of each feature in order; None for a category."""
    group: int = Field(ge=2)
    """Smallest number of records in a group."""

    @classmethod
    def of(cls, learner: Learner, encoding: Encoding, frame: pl.DataFrame, *, group: int) -> Self:
        """The learner for the values of a table."""
        values = tuple(
            None if one.categories is not None else tuple(np.unique(_numbers(frame[one.name])).tolist())
            for one in encoding.features
        )
        return cls(learner=learner, encoding=encoding, values=values, group=group)

    def records(self, frame: pl.DataFrame) -> Records:
        """The records of a table, grouped by their values."""
        fine = tuple(
            column
            if known is None
            else ColumnEncoding(name=column.name, edges=tuple((a + b) / 2 for a, b in pairwise(known)))
            for column, known in zip(self.encoding.features, self.values, strict=True)
        )
        return Records.of(frame, self.encoding.model_copy(update={"features": fine}))

    def fit(self, records: Records, counts: Codes) -> bytes:
        coded = self._coded(np.repeat(records.cells, counts, axis=0), mask=True)
        return self.learner.fit(coded, coded.counts)

    def score(self, model: bytes, records: Records) -> float:
        """The score on the records as they are."""
        return self.learner.score(model, self._coded(np.repeat(records.cells, records.counts, axis=0), mask=False))

    def describe(self, model: bytes, encoding: Encoding) -> list[str]:
        return self.learner.describe(model, self.encoding)

    def _coded(self, rows: Codes, *, mask: bool) -> Records:
        codes = rows.copy()
        for place, (column, known) in enumerate(zip(self.encoding.features, self.values, strict=True)):
            if known is not None:
                numbers = np.asarray(known)[rows[:, place]]
                shown = _group_means(numbers, self.group) if mask else numbers
                codes[:, place] = column.encode(pl.DataFrame({column.name: shown}))
        once = np.ones(len(codes), dtype=np.int64)
        return Records(encoding=self.encoding, cells=codes, counts=once, cell_of_row=np.arange(len(codes)))


def _group_means(numbers: npt.NDArray[np.float64], group: int) -> npt.NDArray[np.float64]:
    """Each number replaced by the mean of its group; fewer than two groups give one mean.

    >>> _group_means(np.array([5.0, 1, 2, 9, 6]), 2).tolist()
    [6.666666666666667, 1.5, 1.5, 6.666666666666667, 6.666666666666667]
    """
    order = np.argsort(numbers, kind="stable")
    place = np.minimum(np.arange(len(numbers)) // group, max(0, len(numbers) // group - 1))
    means = np.bincount(place, weights=numbers[order]) / np.bincount(place)
    masked = np.empty_like(numbers)
    masked[order] = means[place]
    return masked


def _numbers(series: pl.Series) -> npt.NDArray[np.float64]:
    return np.asarray(series.cast(pl.Float64).to_numpy(), dtype=np.float64)
