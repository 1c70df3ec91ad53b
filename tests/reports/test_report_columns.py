"""Columns before and after: lifted along hierarchies, ranges shared, and chosen without a look at the original."""

from __future__ import annotations

from datetime import date, timedelta

import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.reports.columns import ABOVE, BELOW, MISSING, OTHER, column_pictures
from sfumato.reports.report_data import ColumnPicture


def picture(before: pl.Series | None, after: pl.Series, **declared: object) -> ColumnPicture:
    original = Table(frame=pl.DataFrame({"x": before} if before is not None else {"y": [1]}))
    manifest = {"columns": {"x": {"role": "quasi", **declared}}}
    [found] = column_pictures(original, Table(frame=pl.DataFrame({"x": after})), manifest)
    return found


def shares(found: ColumnPicture) -> dict[str, tuple[float | None, float]]:
    return {bar.label: (bar.before, bar.after) for bar in found.bars}


def test_masked_zip_is_compared_with_the_original_at_the_released_level():
    before = pl.Series(["02141", "02142", "02151", "02139"])
    after = pl.Series(["0214*", "0214*", "0215*", "0213*"])
    found = picture(before, after, hierarchy={"mask": "right"})
    assert shares(found) == {"0213*": (0.25, 0.25), "0214*": (0.5, 0.5), "0215*": (0.25, 0.25)}
    assert "level 1" in found.note


def test_mixed_levels_are_lifted_to_the_coarsest_and_the_root_stays_a_bar():
    before = pl.Series(["02141", "02142", "02151", "02139"])
    after = pl.Series(["02141", "021**", "0215*", "*"])
    found = picture(before, after, hierarchy={"mask": "right"})
    assert shares(found) == {"021**": (1.0, 0.75), "*": (0.0, 0.25)}


def test_many_released_values_are_shown_at_a_coarser_level():
    values = pl.Series([f"{n:05d}" for n in range(10000, 20000, 37)])
    found = picture(values, values, hierarchy={"mask": "right"})
    assert 2 <= len(found.bars) <= 20
    assert all(bar.before == pytest.approx(bar.after) for bar in found.bars)
    assert "finer" in found.note


def test_birth_dates_become_years_in_their_order():
    days = [date(1950, 1, 1) + timedelta(days=400 * n) for n in range(10)]
    found = picture(
        pl.Series(days), pl.Series([str(day.year) for day in days]), kind="date", hierarchy={"dates": ["month", "year"]}
    )
    labels = [bar.label for bar in found.bars]
    assert labels == sorted(labels)
    assert all(bar.before == pytest.approx(bar.after) for bar in found.bars)


def test_dates_without_hierarchy_share_periods():
    days = [date(1950, 1, 1) + timedelta(days=200 * n) for n in range(100)]
    found = picture(pl.Series(days), pl.Series(days[:50]))
    assert len(found.bars) <= 20
    assert sum(bar.before or 0 for bar in found.bars) == pytest.approx(1)
    assert "Shown by" in found.note


def test_numbers_share_ranges_made_of_the_released_ones_alone():
    before = pl.Series([*map(float, range(100)), -1000.5, 9999.5])
    found = picture(before, pl.Series([float(n) for n in range(100)]))
    labels = [bar.label for bar in found.bars]
    assert labels[0] == BELOW
    assert labels[-1] == ABOVE
    assert all(bar.after == 0 for bar in found.bars if bar.label in (BELOW, ABOVE))
    assert sum(bar.after for bar in found.bars) == pytest.approx(1)


def test_overlapping_ranges_are_spread_evenly():
    before = pl.Series(range(20, 40))
    found = picture(before, pl.Series(["20-29", "[30, 40)", "20-39", "20-39"]))
    assert sum(bar.after for bar in found.bars) == pytest.approx(1)
    assert [bar.after for bar in found.bars] == pytest.approx([1 / len(found.bars)] * len(found.bars))


def test_few_whole_numbers_are_shown_as_they_are():
    found = picture(pl.Series([3, 1, 2, 10, 2]), pl.Series([1, 2, 2, 3, 10]))
    assert [bar.label for bar in found.bars] == ["1", "2", "3", "10"]


def test_missing_cells_are_a_bar_of_their_own():
    found = picture(pl.Series(["a", None, "a", "b"]), pl.Series(["a", None, None, "b"]))
    assert shares(found)[MISSING] == (0.25, 0.5)


def test_rare_categories_are_folded_by_released_counts():
    after = pl.Series([f"v{n}" for n in range(40) for _ in range(n + 1)])
    found = picture(after, after)
    assert len(found.bars) == 20
    assert found.bars[-1].label == OTHER


def test_which_bars_are_shown_does_not_depend_on_the_original():
    after = pl.Series([f"v{n}" for n in range(18)])
    one = picture(pl.Series(["v1"] * 18), after)
    other = picture(pl.Series([f"w{n}" for n in range(90)]), after)
    released = [[bar.label for bar in found.bars if bar.after > 0] for found in (one, other)]
    assert sorted(released[0]) == sorted(released[1])


def test_a_column_the_original_lacks_has_no_before():
    found = picture(None, pl.Series(["a", "b"]))
    assert shares(found) == {"a": (None, 0.5), "b": (None, 0.5)}


def test_pseudonyms_have_no_picture():
    table = Table(frame=pl.DataFrame({"id": ["p1", "p2"], "sex": ["F", "M"]}))
    manifest = {"columns": {"id": {"role": "identifier"}, "sex": {"role": "quasi"}}}
    assert [found.column for found in column_pictures(table, table, manifest)] == ["sex"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (pl.Series([1.5] * 4), pl.Series([1.5] * 4)),
        (pl.Series([None, None], dtype=pl.Float64), pl.Series([None, None], dtype=pl.Float64)),
        (pl.Series([1.0, float("nan"), float("inf")]), pl.Series([1.0, float("nan"), 2.0])),
        (pl.Series([1e-9, 2e-9]), pl.Series([1e-9, 3e-9])),
        (pl.Series([True, False]), pl.Series([True, True])),
        (pl.Series([1, 2]), pl.Series(["*", "*"])),
    ],
)
def test_odd_columns_still_add_up_to_one(before: pl.Series, after: pl.Series):
    found = picture(before, after)
    assert sum(bar.after for bar in found.bars) == pytest.approx(1)
    assert sum(bar.before or 0 for bar in found.bars) == pytest.approx(1)


def test_codes_that_are_stored_as_floats_are_shown_as_codes():
    codes = pl.DataFrame({"roof": [2.0, 4.0, 4.0, 9.0]})
    [picture] = column_pictures(Table(frame=codes), Table(frame=codes), {})
    assert [bar.label for bar in picture.bars] == ["2", "4", "9"]
    assert picture.note == ""


def test_large_numbers_are_told_in_millions():
    pay = pl.DataFrame({"pay": [float(i) + 0.5 for i in range(0, 90_000_000, 1_000_000)]})
    [picture] = column_pictures(Table(frame=pay), Table(frame=pay), {})
    assert picture.bars[0].label == "0 to <10 million"
    assert max(len(bar.label) for bar in picture.bars) <= 24
