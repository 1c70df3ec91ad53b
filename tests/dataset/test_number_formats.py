"""Numbers as people write them are read, or refused where a mark could mean two things."""

import polars as pl
import pytest

from sfumato.dataset import Column, Kind, Role
from sfumato.dataset.number_formats import NumberFormat, number_format
from sfumato.errors import WrongKind


def cast(values, kind, codes=()):
    return Column(role=Role.PLAIN, kind=kind, missing_codes=codes).cast(pl.Series("c", values)).to_list()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["69,5", "70"], [69.5, 70.0]),
        (["2.096,78", "459,62"], [2096.78, 459.62]),
        (["1.234.567", "12,5"], [1234567.0, 12.5]),
        (["1,234.50", "7"], [1234.5, 7.0]),
        (["1 234,5", "1\u202f000,0"], [1234.5, 1000.0]),
        (["1'234.5", "1’000"], [1234.5, 1000.0]),
        (["-1,5", "+2,5"], [-1.5, 2.5]),
        (["1.234", "2.5"], [1.234, 2.5]),
        (["1e5", "2"], [100000.0, 2.0]),
    ],
)
def test_numbers(values, expected):
    assert cast(values, Kind.NUMBER) == expected


def test_whole_numbers_with_thousands():
    assert cast(["1.234.567", "12"], Kind.INTEGER) == [1234567, 12]
    assert cast(["12345678901234567", "5"], Kind.INTEGER) == [12345678901234567, 5]


@pytest.mark.parametrize("values", [["1,234"], ["1,234", "12"], ["12.34,5"], ["1.23,4"], ["1,2,3"], ["69,5", "k.A."]])
def test_what_is_not_clear_is_refused(values):
    with pytest.raises(WrongKind):
        cast(values, Kind.NUMBER)


@pytest.mark.parametrize("values", [["1.500", "2.000"], ["1,5"], ["90071992547409930,0", "1.000,0"]])
def test_no_whole_number_is_made_up(values):
    with pytest.raises(WrongKind):
        cast(values, Kind.INTEGER)


def test_the_count_of_bad_values_is_that_of_the_others():
    with pytest.raises(WrongKind, match="1 of its 4"):
        cast(["69,5", "70,5", "71", "k.A."], Kind.NUMBER)
    assert cast(["69,5", "70,5", "71", "k.A."], Kind.NUMBER, ("k.A.",)) == [69.5, 70.5, 71.0, None]


def test_a_point_is_a_decimal_sign_where_it_may_be_one():
    assert number_format(pl.Series(["1.234"])) == NumberFormat(decimal=".")
    assert number_format(pl.Series(["abc"])) is None
    assert number_format(pl.Series([], dtype=pl.String)) is None
