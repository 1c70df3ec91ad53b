"""Intervals, masks and dates keep their promises on values nobody thought of."""

from datetime import date
from fractions import Fraction

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sfumato.dataset.hierarchies.dates import DatesHierarchy
from sfumato.dataset.hierarchies.file import FileHierarchy
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.dataset.hierarchies.mask import MaskHierarchy

whole = st.integers(-(10**9), 10**9)


@given(st.lists(whole, min_size=1, max_size=30), st.integers(1, 50), st.integers(2, 5), whole)
def test_a_band_of_whole_numbers_is_where_integer_division_says(values, width, factor, origin):
    rule = IntervalsHierarchy.build({"widths": [width, width * factor], "origin": origin})
    hierarchy = rule.bind("c", pl.Series("c", values, dtype=pl.Int64))
    for level, size in zip(hierarchy.levels[1:], (width, width * factor), strict=False):
        for leaf, code in zip(hierarchy.leaves.to_list(), level.codes.tolist(), strict=True):
            assert level.low[code] == (leaf - origin) // size * size + origin
            assert level.high[code] == level.low[code] + size - 1


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=30), st.integers(1, 4), st.integers(1, 99))
def test_a_band_of_decimals_is_where_exact_arithmetic_says(numerators, places, width):
    scale = 10**places
    rule = IntervalsHierarchy.build([width / scale])
    hierarchy = rule.bind("c", pl.Series("c", [n / scale for n in numerators], dtype=pl.Float64))
    level = hierarchy.levels[1]
    for leaf, code in zip(hierarchy.leaves.to_list(), level.codes.tolist(), strict=True):
        cell = Fraction(round(leaf * scale), width) // 1
        assert level.low[code] == float(Fraction(cell * width, scale))


@given(
    st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=20, unique=True), st.sampled_from(["left", "right"])
)
def test_masks_keep_length_and_nest(values, direction):
    hierarchy = MaskHierarchy.build(direction).bind("c", pl.Series("c", values))
    assert hierarchy.levels[-1].size == 1
    for level in hierarchy.levels[:-1]:
        for leaf, label in zip(hierarchy.leaves, level.text, strict=True):
            assert len(label) == len(leaf)


@given(st.lists(st.dates(date(1, 1, 1), date(9999, 12, 31)), min_size=1, max_size=30, unique=True))
def test_dates_share_a_label_exactly_when_they_share_the_unit(values):
    hierarchy = DatesHierarchy.build(["month", "year", "decade", "century"]).bind("c", pl.Series("c", values))
    keys = [lambda d: (d.year, d.month), lambda d: d.year, lambda d: d.year // 10, lambda d: d.year // 100]
    for level, key in zip(hierarchy.levels[1:], keys, strict=False):
        pairs = {(key(leaf), label) for leaf, label in zip(hierarchy.leaves, level.text, strict=True)}
        assert len(pairs) == len({key for key, _ in pairs}) == len({label for _, label in pairs})


printable = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)


@given(st.dictionaries(printable, printable, min_size=1, max_size=15))
def test_any_text_survives_the_file(tmp_path_factory, mapping):
    from sfumato.dataset.bound_hierarchy import BoundHierarchy

    labels = [list(mapping.values()), ["*"] * len(mapping)]
    hierarchy = BoundHierarchy.from_labels("c", pl.Series("c", list(mapping)), labels)
    path = tmp_path_factory.mktemp("h") / "h.csv"
    hierarchy.to_csv(path)
    assert FileHierarchy.build({"path": path, "delimiter": ";"}).bind("c", pl.Series("c", [""])) == hierarchy
