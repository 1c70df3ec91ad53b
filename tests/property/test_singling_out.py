"""The smallest combinations are those of brute force, on tables nobody thought of."""

from itertools import combinations

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.profiling.singling_out import single_out

columns = st.integers(1, 5)
tables = st.tuples(st.integers(2, 25), columns).flatmap(
    lambda shape: st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=shape[0], max_size=shape[0]),
        min_size=shape[1],
        max_size=shape[1],
    )
)


@given(tables, st.sampled_from([0.05, 0.5, 1.0]))
@settings(deadline=None, max_examples=60)
def test_smallest_combinations(table, threshold):
    frame = pl.DataFrame({f"c{i}": pl.Series(values, dtype=pl.Int64) for i, values in enumerate(table)})
    expected: dict[tuple[str, ...], float] = {}
    for size in range(1, 5):
        for names in combinations(frame.columns, size):
            rows = list(zip(*(frame[name].to_list() for name in names), strict=True))
            share = sum(rows.count(row) == 1 for row in rows) / frame.height
            if share >= threshold and not any(set(part) < set(names) for part in expected):
                expected[names] = share
    found = single_out(frame, threshold=threshold, show=100)
    assert {c.columns: c.unique for c in found.minimal} == expected
