"""Positions of values in an index: the quick ways give what a plain look-up gives."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from sfumato.data.row_codes import positions

TYPES = [pl.Int8, pl.Int16, pl.Int64, pl.UInt8, pl.UInt64, pl.Float64, pl.String, pl.Date, pl.Categorical]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("gaps", ["none", "values", "both"])
def test_every_type_is_found_as_a_plain_look_up_finds_it(dtype: type[pl.DataType], gaps: str) -> None:
    generator = np.random.default_rng(3)
    for _ in range(30):
        drawn: list[int | None] = generator.integers(0, 25, generator.integers(0, 30)).tolist()
        listed: list[int | None] = generator.permutation(25)[: generator.integers(1, 20)].tolist()
        if gaps != "none":
            drawn = [value if value is None or value % 5 else None for value in drawn]
        if gaps == "both":
            listed[0] = None

        def series(numbers: list[int | None]) -> pl.Series:
            if dtype in (pl.String, pl.Categorical):
                return pl.Series([None if n is None else f"v{n}" for n in numbers], dtype=pl.String).cast(dtype)
            return pl.Series(numbers, dtype=pl.Int64).cast(dtype)

        place = {value: number for number, value in enumerate(listed)}
        found = positions(series(drawn), series(listed))
        assert found.dtype == pl.Int64
        assert found.to_list() == [place.get(value) for value in drawn]


def test_values_far_outside_the_index_are_not_found() -> None:
    far = pl.Series([2**62, -(2**63), 5, 7, 2**63 - 1])
    assert positions(far, pl.Series([7, 5])).to_list() == [None, None, 1, 0, None]
    assert positions(far, pl.Series([2**63 - 1, -(2**63)])).to_list() == [None, 1, None, None, 0]
