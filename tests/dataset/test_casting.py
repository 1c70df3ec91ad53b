"""A column becomes its declared kind, or is refused; nothing is rounded on the way."""

from datetime import date, datetime

import polars as pl
import pytest

from sfumato.data import Table
from sfumato.dataset import Column, Data, Kind, RangeDomain, Role, Schema
from sfumato.dataset.casting import date_format, read_dates
from sfumato.errors import BadParameter, WrongKind


def cast(values, kind, dtype=None):
    return Column(role=Role.PLAIN, kind=kind).cast(pl.Series("c", values, dtype=dtype))


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", " 2", None], Kind.INTEGER, [1, 2, None]),
        ([1.0, None, 3.0], Kind.INTEGER, [1, None, 3]),
        (["1.5", "2"], Kind.NUMBER, [1.5, 2.0]),
        ([" 1.5", "2 "], Kind.NUMBER, [1.5, 2.0]),
        ([1, 2], Kind.NUMBER, [1.0, 2.0]),
        (["Yes", "no", None], Kind.BOOLEAN, [True, False, None]),
        ([0, 1], Kind.BOOLEAN, [False, True]),
        ([0.0, 1.0, None], Kind.BOOLEAN, [False, True, None]),
        ([1, 2], Kind.CATEGORY, ["1", "2"]),
        (["1965-07-31"], Kind.DATE, [date(1965, 7, 31)]),
        (["31.07.1965"], Kind.DATE, [date(1965, 7, 31)]),
        (["07/31/1965", "01/02/1965"], Kind.DATE, [date(1965, 7, 31), date(1965, 1, 2)]),
        ([19650731], Kind.DATE, [date(1965, 7, 31)]),
        ([datetime(1965, 7, 31)], Kind.DATE, [date(1965, 7, 31)]),
        (["1965-07-31 10:30:00"], Kind.DATETIME, [datetime(1965, 7, 31, 10, 30)]),
        (["1965-07-31T10:30"], Kind.DATETIME, [datetime(1965, 7, 31, 10, 30)]),
        ([date(1965, 7, 31)], Kind.DATETIME, [datetime(1965, 7, 31)]),
        ([None, None], Kind.DATE, [None, None]),
    ],
)
def test_a_value_that_fits(values, kind, expected):
    assert cast(values, kind).to_list() == expected


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1.5], Kind.INTEGER),
        (["x7q"], Kind.INTEGER),
        (["x7q"], Kind.NUMBER),
        (["maybe"], Kind.BOOLEAN),
        ([2], Kind.BOOLEAN),
        (["x7q"], Kind.DATE),
        (["x7q"], Kind.DATETIME),
        (["01/02/1965"], Kind.DATE),
        (["1/2/65"], Kind.DATE),
        ([datetime(1965, 7, 31, 10)], Kind.DATE),
        ([date(1965, 7, 31)], Kind.INTEGER),
        ([date(1965, 7, 31)], Kind.NUMBER),
    ],
)
def test_a_value_that_does_not_fit_is_counted_not_shown(values, kind):
    with pytest.raises(WrongKind) as refusal:
        cast(values, kind)
    assert "1 of its 1 values" in str(refusal.value)
    assert str(values[0]) not in str(refusal.value)
    assert refusal.value.rows == (0,)


def test_one_bad_date_among_good_ones_is_the_one_reported():
    with pytest.raises(WrongKind) as refusal:
        cast(["1965-07-31", "1966-01-01", "unknown", None], Kind.DATE)
    assert refusal.value.rows == (2,)


def test_the_input_is_not_changed():
    series = pl.Series("c", [1.0, 2.0])
    Column(role=Role.PLAIN, kind=Kind.INTEGER).cast(series)
    assert series.dtype == pl.Float64


def test_a_share_of_dates_is_enough_where_asked():
    texts = pl.Series(["1965-07-31", "1966-01-01", "1967-01-01", "?"])
    assert date_format(texts) is None
    assert date_format(texts, share=0.7) == "%Y-%m-%d"
    assert read_dates(texts, "%Y-%m-%d").null_count() == 1


def test_midnight_where_the_people_live_is_a_day():
    """With a time zone, the day is that of the zone: midnight in Berlin is not the day before, as in UTC."""
    local = pl.Series("c", [datetime(2020, 1, 1), datetime(2020, 7, 1)]).dt.replace_time_zone("Europe/Berlin")
    assert cast(local, Kind.DATE).to_list() == [date(2020, 1, 1), date(2020, 7, 1)]
    with pytest.raises(WrongKind, match="1 of its 1"):
        cast(pl.Series("c", [datetime(2020, 1, 1, 5)]).dt.replace_time_zone("Europe/Berlin"), Kind.DATE)


@pytest.mark.parametrize("weight", [0.0, -1.0, float("nan"), float("inf"), None])
def test_a_weight_is_a_positive_number(weight):
    table = Table(frame=pl.DataFrame({"w": [1.0, weight]}))
    with pytest.raises(BadParameter, match="positive"):
        Data.of(table, Schema(columns={"w": Column(role=Role.WEIGHT)}))


@pytest.mark.parametrize("ends", [(float("nan"), 1), (0, float("nan")), (0, float("inf")), (2, 1)])
def test_a_domain_ends_at_numbers(ends):
    with pytest.raises(ValueError, match="finite"):
        RangeDomain(low=ends[0], high=ends[1])


def test_bytes_can_only_be_removed():
    table = Table(frame=pl.DataFrame({"face": [b"\xff", b"\x00"], "age": [1, 2]}))
    for columns in ({"age": Column(role=Role.QUASI)}, {"face": Column(role=Role.QUASI)}):
        with pytest.raises(WrongKind, match="`face` holds bytes"):
            Data.of(table, Schema(columns=columns))
    assert Data.of(table, Schema(columns={"face": Column(role=Role.IDENTIFIER)})).rows == 2
