"""Each hierarchy says what its docstring says; bad ones are refused with the reason."""

import gzip
from datetime import date, datetime

import polars as pl
import pytest

from sfumato.data.table import Table as DataTable
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.bound_hierarchy import BoundHierarchy, root_only, with_missing
from sfumato.dataset.hierarchies.dates import DatesHierarchy
from sfumato.dataset.hierarchies.file import FileHierarchy
from sfumato.dataset.hierarchies.groups import GroupsHierarchy
from sfumato.dataset.hierarchies.intervals import IntervalsHierarchy
from sfumato.dataset.hierarchies.mask import MaskHierarchy
from sfumato.dataset.hierarchies.table import TableHierarchy
from sfumato.dataset.hierarchies.taxonomy import TaxonomyHierarchy
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.errors import (
    BadParameter,
    FileMissing,
    HierarchyGap,
    HierarchyNotNested,
    NotThatFormat,
    UnknownPart,
    WrongKind,
)


def levels(rule, values, **options):
    hierarchy = rule.bind("c", pl.Series("c", values, **options))
    return [level.text.to_list() for level in hierarchy.levels]


class TestBoundHierarchy:
    hierarchy = BoundHierarchy.from_labels("c", pl.Series([10, 20, 30]), [["a", "a", "b"], ["*", "*", "*"]])

    def test_encode_decode_generalize(self):
        column = pl.Series("c", [30, 10, 10])
        assert self.hierarchy.encode(column).tolist() == [2, 0, 0]
        assert self.hierarchy.generalize(column, 0).to_list() == [30, 10, 10]
        assert self.hierarchy.generalize(column, 1).to_list() == ["b", "a", "a"]
        assert self.hierarchy.levels[1].leaves_under.tolist() == [2, 1]

    @pytest.mark.parametrize("dtype", [pl.String, pl.Int8, pl.Int64, pl.Categorical, pl.Enum(["10", "20", "30"])])
    def test_a_column_of_another_type_is_compared_as_text(self, dtype):
        column = pl.Series("c", ["30", "10"]).cast(dtype)
        assert self.hierarchy.encode(column).tolist() == [2, 0]

    def test_a_gap_is_an_error_with_rows_and_without_values(self):
        column = pl.Series("c", [10, 77, None, 88, 77])
        with pytest.raises(HierarchyGap) as refusal:
            self.hierarchy.check(column)
        assert refusal.value.rows == (1, 3, 4)
        assert "2 of the column's values (3 rows, first in row 2)" in str(refusal.value)
        assert "77" not in str(refusal.value)
        assert self.hierarchy.gaps(column).to_list() == [77, 88]

    def test_an_empty_cell_needs_a_leaf_to_be_encoded(self):
        column = pl.Series("c", [10, None])
        self.hierarchy.check(column)
        with pytest.raises(HierarchyGap, match="empty cells"):
            self.hierarchy.encode(column)
        full = with_missing(self.hierarchy)
        assert full.encode(column).tolist() == [0, 3]
        assert full.generalize(column, 1).to_list() == ["a", None]
        assert full.generalize(column, 2).to_list() == ["*", "*"]
        assert with_missing(full) is full
        assert self.hierarchy.leaves.null_count() == 0

    def test_missing_keeps_bounds(self):
        full = with_missing(IntervalsHierarchy.build([5, 10]).bind("age", pl.Series([3, 27])))
        assert full.levels[1].low.tolist() == [0, 25, 0]
        assert full.levels[1].high.tolist() == [4, 29, 29]
        assert full.levels[-1].size == 1

    def test_missing_survives_the_file(self, tmp_path):
        full = with_missing(self.hierarchy)
        full.to_csv(tmp_path / "h.csv")
        assert FileHierarchy.build(tmp_path / "h.csv").bind("c", pl.Series([10])) == full

    def test_labels_that_merge_and_split_are_refused(self):
        with pytest.raises(HierarchyNotNested) as refusal:
            BoundHierarchy.from_labels("c", pl.Series([1, 2]), [["a", "a"], ["x", "y"]])
        assert refusal.value.level == 1
        assert refusal.value.lines == (1,)

    def test_a_repeated_leaf_is_refused(self):
        with pytest.raises(HierarchyNotNested, match="line 1 and a later one"):
            BoundHierarchy.from_labels("c", pl.Series(["v", "w", "v"]), [["*"] * 3])

    def test_equality(self):
        assert self.hierarchy == BoundHierarchy.from_labels("c", pl.Series([10, 20, 30]), [["a", "a", "b"], ["*"] * 3])
        assert self.hierarchy != BoundHierarchy.from_labels("c", pl.Series([10, 20, 30]), [["a", "b", "b"], ["*"] * 3])
        assert self.hierarchy != BoundHierarchy.from_labels(
            "c", pl.Series(["10", "20", "30"]), [["a", "a", "b"], ["*"] * 3]
        )
        assert self.hierarchy != root_only("c", pl.Series([10, 20, 30]))

    def test_a_data_set_lays_it_over_its_column(self):
        frame = pl.DataFrame({"age": [23, None, 41]})
        schema = Schema(columns={"age": Column(role=Role.QUASI, hierarchy={"intervals": [10]})})
        hierarchy = Data.of(DataTable(frame=frame), schema).bound_hierarchy("age")
        assert hierarchy.generalize(frame["age"], 1).to_list() == ["20–29", None, "40–49"]


class TestIntervals:
    def test_whole_numbers(self):
        assert levels(IntervalsHierarchy.build([5, 10]), [0, 4, 5, 19])[1] == ["0–4", "0–4", "5–9", "15–19"]

    def test_numbers(self):
        assert levels(IntervalsHierarchy.build([5]), [0.0, 4.99, 5.0])[1] == ["[0, 5)", "[0, 5)", "[5, 10)"]

    def test_decimal_widths_mean_what_was_written(self):
        # 0.3 / 0.1 is 2.9999999999999996 in floating point.
        assert levels(IntervalsHierarchy.build([0.1, 0.3]), [0.29, 0.3, 0.7])[1] == [
            "[0.2, 0.3)",
            "[0.3, 0.4)",
            "[0.7, 0.8)",
        ]

    def test_negative_numbers(self):
        assert levels(IntervalsHierarchy.build([5]), [-6, -1, 0])[1] == ["-10 to -6", "-5 to -1", "0–4"]

    def test_large_numbers_lie_in_their_own_band(self):
        numbers = [1_000_000_009, 10_000_000_007, 9_007_199_254_740_993]
        for kind in (pl.Int64, pl.Float64):
            hierarchy = IntervalsHierarchy.build([10]).bind("c", pl.Series(numbers[:2], dtype=kind))
            assert hierarchy.levels[1].low.tolist() == [1_000_000_000, 10_000_000_000]
        assert levels(IntervalsHierarchy.build([10]), numbers)[1][2] == "9007199254740990–9007199254740999"

    def test_origin_top_and_bottom(self):
        rule = IntervalsHierarchy.build({"widths": [10, 20], "origin": 5, "bottom": 18, "top": 90})
        assert levels(rule, [3, 17, 18, 24, 25, 84, 85, 89, 90, 120])[1] == [
            *("< 18", "< 18", "18–24", "18–24", "25–34", "75–84", "85–89", "85–89", ">= 90", ">= 90")
        ]
        assert levels(rule, [18, 24, 25, 89, 90])[2] == ["18–24", "18–24", "25–44", "85–89", ">= 90"]

    def test_width_one_is_the_number_itself(self):
        assert levels(IntervalsHierarchy.build([1, 5]), [7])[1] == ["7"]

    @pytest.mark.parametrize(
        "widths", [[5, 12], [10, 5], [5, 5], [0], [-1], [], [float("inf")], ["a"], [2, 1e308], [1, 10**30]]
    )
    def test_widths_that_do_not_nest_are_refused(self, widths):
        with pytest.raises(BadParameter, match=r"intervals: widths"):
            IntervalsHierarchy.build(widths)

    @pytest.mark.parametrize("values", [["a"], [True], [float("nan")], [float("inf")]])
    def test_what_is_no_number_is_refused(self, values):
        with pytest.raises(WrongKind, match="`c`"):
            levels(IntervalsHierarchy.build([5]), values)

    def test_bands_too_narrow_for_the_numbers(self):
        with pytest.raises(BadParameter, match="too narrow"):
            levels(IntervalsHierarchy.build([0.001]), [1e300])


class TestMask:
    def test_right_and_left(self):
        assert levels(MaskHierarchy.build("right"), ["02141"]) == [
            [x] for x in ("02141", "0214*", "021**", "02***", "0****", "*****")
        ]
        assert levels(MaskHierarchy.build("left"), ["abc"]) == [["abc"], ["*bc"], ["**c"], ["***"]]

    def test_steps(self):
        assert levels(MaskHierarchy.build({"direction": "right", "steps": [2, 9]}), ["02141"]) == [
            ["02141"],
            ["021**"],
            ["*****"],
        ]

    def test_shorter_values_are_masked_altogether(self):
        assert levels(MaskHierarchy.build("right"), ["A1", "AB12"])[1:] == [
            ["A*", "AB1*"],
            ["**", "AB**"],
            ["**", "A***"],
            ["****", "****"],
        ]

    def test_whole_numbers_are_masked_as_they_are_written(self):
        assert levels(MaskHierarchy.build("right"), [941])[1] == ["94*"]

    def test_letters_count_not_bytes(self):
        assert levels(MaskHierarchy.build("right"), ["äöü"])[1] == ["äö*"]

    @pytest.mark.parametrize("bad", [{"direction": "up"}, {"direction": "left", "steps": [3, 2]}, {"character": "**"}])
    def test_bad_settings(self, bad):
        with pytest.raises(BadParameter):
            MaskHierarchy.build(bad)


class TestDates:
    def test_all_units(self):
        day = [date(1965, 7, 31)]
        rule = DatesHierarchy.build(["day", "month", "quarter", "year", "decade", "century"])
        assert levels(rule, day) == [
            [x] for x in ("1965-07-31", "1965-07", "1965-Q3", "1965", "1960s", "1900-1999", "*")
        ]
        assert levels(DatesHierarchy.build(["week"]), [date(2021, 1, 3), date(2021, 1, 4)])[1] == [
            "2020-W53",
            "2021-W01",
        ]

    def test_moments(self):
        rule = DatesHierarchy.build(["hour", "day"])
        assert levels(rule, [datetime(1965, 7, 31, 14, 5)])[1:] == [["1965-07-31T14"], ["1965-07-31"], ["*"]]

    def test_a_day_has_no_hour(self):
        rule = DatesHierarchy.build(["hour", "day", "year"])
        assert levels(rule, [date(1965, 7, 31)]) == [["1965-07-31"], ["1965"], ["*"]]
        assert levels(DatesHierarchy.build(["hour"]), [date(1965, 7, 31)]) == [["1965-07-31"], ["*"]]

    @pytest.mark.parametrize("units", [["year", "month"], ["week", "month"], ["month", "month"], ["fortnight"], []])
    def test_units_that_do_not_nest(self, units):
        with pytest.raises(BadParameter, match="units"):
            DatesHierarchy.build(units)

    def test_a_column_that_is_no_date(self):
        with pytest.raises(WrongKind, match="kind: date"):
            levels(DatesHierarchy.build(["year"]), ["1965-07-31"])


class TestGroups:
    def test_uneven_groups_and_sets(self):
        rule = GroupsHierarchy.build({"order": [1, 2, 3, 4, 5], "sizes": [2, [2, 1]], "labels": "set"})
        assert levels(rule, [1]) == [
            ["1", "2", "3", "4", "5"],
            ["{1, 2}", "{1, 2}", "{3, 4}", "{3, 4}", "5"],
            ["{1, 2, 3, 4}"] * 4 + ["5"],
            ["*"] * 5,
        ]

    def test_leaves_are_typed_like_the_column(self):
        rule = GroupsHierarchy.build({"order": [True, False], "sizes": []})
        assert rule.bind("c", pl.Series([True])).leaves.to_list() == [True, False]

    @pytest.mark.parametrize("sizes", [[[1, 1]], [0], [[2, 2], [1]]])
    def test_sizes_that_do_not_add_up(self, sizes):
        with pytest.raises(BadParameter):
            GroupsHierarchy.build({"order": ["a", "b", "c", "d"][: 4 if len(sizes) > 1 else 3], "sizes": sizes})


class TestTaxonomy:
    def test_a_key_without_children_is_a_value(self):
        assert levels(TaxonomyHierarchy.build({"tree": {"A": {"x": None, "y": None}, "z": None}}), ["x"]) == [
            ["x", "y", "z"],
            ["A", "A", "z"],
            ["*", "*", "*"],
        ]

    def test_numbers(self):
        rule = TaxonomyHierarchy.build({"tree": {"low": [1, 2], "high": [3]}})
        assert rule.bind("c", pl.Series([1])).leaves.to_list() == [1, 2, 3]

    def test_a_label_in_two_branches(self):
        rule = TaxonomyHierarchy.build({"tree": {"A": {"x": [1]}, "B": {"x": [2]}}})
        with pytest.raises(HierarchyNotNested):
            rule.bind("c", pl.Series([1]))

    @pytest.mark.parametrize("tree", [{}, [], {"A": []}, {"A": [date(2000, 1, 1)]}])
    def test_not_a_tree(self, tree):
        with pytest.raises(BadParameter, match="tree"):
            TaxonomyHierarchy.build({"tree": tree})


class TestFile:
    def written(self, folder, data, **options):
        folder.joinpath("h.csv").write_bytes(data)
        return FileHierarchy.build({"path": "h.csv", **options}, base=folder)

    @pytest.mark.parametrize("delimiter", [";", ",", "\t", "|"])
    def test_the_delimiter_is_found(self, tmp_path, delimiter):
        text = "1;young;*\n2;old;*\n".replace(";", delimiter)
        hierarchy = self.written(tmp_path, text.encode()).bind("c", pl.Series([1]))
        assert hierarchy.leaves.to_list() == [1, 2]
        assert hierarchy.height == 2

    def test_encodings_and_compression(self, tmp_path):
        text = "Köln;Rhein;*\n"
        for data in (text.encode(), text.encode("utf-8-sig"), text.encode("latin-1"), gzip.compress(text.encode())):
            assert levels(self.written(tmp_path, data), ["Köln"])[0] == ["Köln"]
        with pytest.raises(NotThatFormat, match="ascii"):
            levels(self.written(tmp_path, text.encode(), encoding="ascii"), ["x"])

    def test_a_damaged_file(self, tmp_path):
        packed = gzip.compress(b"a;x;*\nb;y;*\n" * 50)
        for damaged in (packed[:15] + b"\xff\xff\xff" + packed[18:], packed[:-9]):
            with pytest.raises(NotThatFormat, match="decoded"):
                levels(self.written(tmp_path, damaged), ["a"])

    def test_quotes_and_a_missing_root(self, tmp_path):
        rule = self.written(tmp_path, b'"a;b";group one\nc;group two\n\n')
        assert levels(rule, ["c"]) == [["a;b", "c"], ["group one", "group two"], ["*", "*"]]

    def test_lines_of_different_length(self, tmp_path):
        with pytest.raises(HierarchyNotNested, match="line 2"):
            levels(self.written(tmp_path, b"a;x;*\nb;*\n"), ["a"])

    def test_an_empty_file(self, tmp_path):
        with pytest.raises(HierarchyNotNested, match="no lines"):
            levels(self.written(tmp_path, b""), ["a"])

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(FileMissing, match=r"h\.csv"):
            levels(FileHierarchy.build("h.csv", base=tmp_path), ["a"])

    def test_leaves_typed_like_the_column(self, tmp_path):
        rule = self.written(tmp_path, b"1965-07-31;1965;*\n1966-01-01;1966;*\n")
        assert rule.bind("c", pl.Series([date(1965, 7, 31)])).leaves.to_list() == [
            date(1965, 7, 31),
            date(1966, 1, 1),
        ]
        assert rule.bind("c", pl.Series([1])).leaves.dtype == pl.String
        numbers = self.written(tmp_path, b"1;*\n2;*\n").bind("c", pl.Series([1.0]))
        assert numbers.encode(pl.Series([2.0, 1.0])).tolist() == [1, 0]

    def test_the_same_number_written_twice(self, tmp_path):
        with pytest.raises(HierarchyNotNested, match="twice"):
            self.written(tmp_path, b"1;*\n01;*\n").bind("c", pl.Series([1]))


class TestPlainForm:
    @pytest.mark.parametrize("bad", ["intervals", {"intervals": [5], "mask": "right"}, [5, 10], 3])
    def test_not_one_named_rule(self, bad):
        with pytest.raises(ValueError, match="a hierarchy is one of"):
            hierarchy_from_dict(bad)

    def test_unknown_name(self):
        with pytest.raises(UnknownPart, match="Did you mean `intervals`"):
            hierarchy_from_dict({"interval": [5]})

    def test_rows_of_a_table_keep_their_types(self):
        rule = TableHierarchy.build([[1, "low", "*"], [2, "high", "*"], ["", "none", "*"]])
        assert rule.bind("c", pl.Series([1])).leaves.to_list() == [1, 2, None]
