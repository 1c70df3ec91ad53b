"""Synthetic records lie between real ones, in the type of the column."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.attacks.remasking import RecordInterpolation
from sfumato.rng import Rng


@pytest.mark.parametrize(
    ("kind", "scale"), [(pl.UInt8, 2), (pl.UInt64, 2**57), (pl.Int64, 2**56), (pl.Float64, 1e300), (pl.Float32, 0.5)]
)
def test_they_lie_within_the_range_of_the_people(kind: pl.DataType, scale: float) -> None:
    values = [int(value) * scale for value in np.random.default_rng(1).integers(0, 120, 60)]
    people = pl.DataFrame({"x": pl.Series(values, dtype=kind), "word": ["a", "b"] * 30})
    made = RecordInterpolation(people).draw(200, Rng(1))
    assert made.schema == people.schema
    assert made["x"].null_count() == 0
    low, high = float(people["x"].min()), float(people["x"].max())  # type: ignore[arg-type]
    found = made["x"].cast(pl.Float64)
    assert found.is_between(low, high).all()
    assert found.n_unique() > 60  # not the people themselves, which have fewer values
    # Between neighbours, not anywhere: most are nearer to a real value than people are spread.
    gaps = np.abs(found.to_numpy()[:, None] - people["x"].cast(pl.Float64).to_numpy()[None, :]).min(axis=1)
    assert np.median(gaps) < 0.05 * (high - low)


def test_what_is_missing_or_infinite_stays_unknown() -> None:
    people = pl.DataFrame({"x": [1.0, None, 3.0, float("inf")], "n": [None, None, None, None]}).with_columns(
        pl.col("n").cast(pl.Int64)
    )
    made = RecordInterpolation(people).draw(100, Rng(1))
    assert made["n"].null_count() == 100
    assert 0 < made["x"].null_count() < 100
    assert made["x"].drop_nulls().is_between(1, 3).all()


def test_one_person_alone_is_like_herself() -> None:
    people = pl.DataFrame({"x": [7]})
    assert RecordInterpolation(people).draw(3, Rng(1))["x"].to_list() == [7, 7, 7]
