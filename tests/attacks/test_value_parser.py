"""The parser of released values reads the notations of many tools."""

from __future__ import annotations

from datetime import date

import polars as pl
import pytest

from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.value_parser import Known, bounds, reader


@pytest.mark.parametrize(
    ("label", "values", "fits"),
    [
        ("*", [1, 2], [True, True]),
        ("021**", ["02139", "02200", "021"], [True, False, False]),
        ("3*", [29, 30, 39, 300], [False, True, True, False]),
        ("20-29", [19, 20, 29, 30], [False, True, True, False]),
        ("20-29", [29.5, 30.0], [True, False]),
        ("[20, 30)", [19, 20, 29, 30], [False, True, True, False]),
        ("[20,30[", [20, 30], [True, False]),
        ("]20,30]", [20, 30], [False, True]),
        ("[20-29]", [20, 30], [True, False]),
        ("20..29", [20, 30], [True, False]),
        ("20–29", [20, 30], [True, False]),
        ("-5--1", [-6, -5, -1, 0], [False, True, True, False]),
        ("<40", [39, 40], [True, False]),
        (">=40", [39, 40], [False, True]),
        (">40", [40, 41], [False, True]),
        ("40+", [39, 40], [False, True]),
        ("{Golf, Tennis}", ["Golf", "Tennis", "Soccer"], [True, True, False]),
        ("1960s", [date(1960, 1, 1), date(1970, 1, 1)], [True, False]),
        ("1960s", [1964, 1970], [True, False]),
        ("1900-1999", [date(1899, 12, 31), date(1900, 1, 1), date(1999, 12, 31)], [False, True, True]),
        ("< 1937", [date(1936, 12, 31), date(1937, 1, 1)], [True, False]),
        ("> 1937", [date(1937, 12, 31), date(1938, 1, 1)], [False, True]),
        ("1964-03", [date(1964, 3, 1), date(1964, 4, 1)], [True, False]),
        ("1964", [date(1964, 3, 1), date(1965, 4, 1)], [True, False]),
        ("1964-Q1", [date(1964, 3, 31), date(1964, 4, 1)], [True, False]),
        ("[1964-01-01, 1964-06-30]", [date(1964, 6, 30), date(1964, 7, 1)], [True, False]),
    ],
)
def test_reading(label: str, values: list[object], fits: list[bool]) -> None:
    read = reader(label)
    assert read is not None
    assert read(Known(values=pl.Series(values))).tolist() == fits
    # The quick look that decides which labels are read at all must not miss any.
    compared = compare(pl.Series("x", values), pl.Series("x", [label, "something else"]))
    assert [0 in _fits(compared, place) for place in range(len(values))] == fits


@pytest.mark.parametrize("label", ["Golf", "02139", "17", "never-married", "HS-grad", "", "United-States"])
def test_plain_values_stand_for_themselves(label: str) -> None:
    assert reader(label) is None


def test_bounds_of_ranges() -> None:
    assert bounds("[20, 30)") == (20.0, 30.0)
    assert bounds(">40") == (40.0, float("inf"))
    assert bounds("HS-grad") is None
    assert bounds("1964-03") is None


def test_types_do_not_hide_equality() -> None:
    found = compare(pl.Series("a", [7, 8]), pl.Series("a", ["8.0", "7", "7-9"]))
    pairs = {(int(value), str(found.labels[int(label)])) for value in range(2) for label in _fits(found, value)}
    assert pairs == {(0, "7"), (0, "7-9"), (1, "7-9")}


def test_suppressed_cells_fit_everybody_and_say_least() -> None:
    found = compare(pl.Series("a", ["x", "y"]), pl.Series("a", ["x", None, "*"]))
    assert [len(_fits(found, value)) for value in range(2)] == [3, 2]
    assert found.cover.tolist() == [1.0, 3.0, 3.0]


def test_published_hierarchy_is_used_before_notation() -> None:
    declared = {"intervals": [10]}
    released = pl.Series("age", ["odd name"])
    assert len(compare(pl.Series("age", [25]), released, declared).fits) == 0


def _fits(found: object, value: int) -> list[int]:
    starts, fits = found.starts, found.fits  # type: ignore[attr-defined]
    return fits[starts[value] : starts[value + 1]].tolist()  # type: ignore[no-any-return]
