"""Contribution limits that are chosen privately: they fit, their share is right, and they are paid."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.dataset import Column, Kind, Role, Schema, ValuesDomain
from sfumato.dp.loss import pure
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.ledger.ledger import Ledger
from sfumato.query.plan.catalog import Catalog, PrivateTable
from sfumato.query.session import Session

PEOPLE = 4000


def visits() -> pl.DataFrame:
    """One to twelve rows per person, in one to three wards."""
    draw = np.random.default_rng(4)
    times = draw.integers(1, 13, PEOPLE)
    person = np.repeat(np.arange(PEOPLE), times)
    wards = np.array(["east", "north", "south", "west"])[(person + draw.integers(0, 3, len(person))) % 4]
    return pl.DataFrame({"person": person, "ward": wards})


DATA = visits()


def session(unit: str | None = "person") -> Session:
    columns = {
        "person": Column(role=Role.PLAIN, kind=Kind.INTEGER),
        "ward": Column(
            role=Role.PLAIN, kind=Kind.CATEGORY, domain=ValuesDomain(values=("east", "north", "south", "west"))
        ),
    }
    book = Ledger.open(":memory:")
    book.set_cap(pure(100), dataset="d")
    table = PrivateTable(name="visits", schema=Schema(columns=columns, unit=unit))
    return Session(Catalog(dataset="d", private={"visits": table}), {"visits": DATA}, ledger=book, analyst="ana")


@pytest.mark.parametrize("by", [(), ("ward",)])
def test_limits_fit_the_share_of_people_and_say_so(by: tuple[str, ...]) -> None:
    """The noise is of about 20 of 4,000 people; limits are whole numbers, so one step off is allowed."""
    asked = session()
    limits = asked.fit_limits("visits", by=by, epsilon=30, share="0.9")
    per_group = DATA.group_by(["person", *by]).len().group_by("person").agg(pl.col("len").max(), pl.len().alias("g"))
    rows, groups = (int(np.quantile(per_group[name], 0.9, method="higher")) for name in ("len", "g"))
    assert abs(limits.rows - rows) <= 1
    assert abs(limits.groups - groups) <= 1
    true = per_group.filter((pl.col("len") <= limits.rows) & (pl.col("g") <= limits.groups)).height / PEOPLE
    assert limits.kept.low is not None
    assert limits.kept.high is not None
    assert limits.kept.low - 0.01 <= true <= limits.kept.high + 0.01
    assert limits.kept.high - limits.kept.low < 0.05
    assert asked.ledger.balance(dataset="d").spent.size == limits.loss.size
    assert abs(limits.loss.size - 30) < Fraction(1, 10**6)


def test_an_interval_with_fitted_limits_holds_the_truth_and_with_tight_ones_there_is_none() -> None:
    asked, rows = session(), len(DATA)
    limits = asked.fit_limits("visits", epsilon=30, share="0.999")
    sql = "SELECT COUNT(*) FROM visits"
    # At epsilon 1 the noise of how many people are cut is above 1 % of the 4,000, so that mostly none is shown.
    wide = asked.ask(sql, epsilon=5, rows=limits.rows, groups=1).rows[0][0]
    tight = asked.ask(sql, epsilon=1, rows=2, groups=1).rows[0][0]
    assert wide.low is not None
    assert wide.high is not None
    assert wide.low - 40 <= rows <= wide.high + 40
    assert tight.value < rows / 2
    assert (tight.low, tight.high) == (None, None)


@pytest.mark.parametrize(
    ("change", "error"),
    [({"by": ["wards"]}, UnknownColumn), ({"table": "visit"}, BadParameter), ({"share": 1}, BadParameter),
     ({"most": 0}, BadParameter)],
)  # fmt: skip
def test_what_cannot_be_fitted_is_refused(change: dict[str, Any], error: type[Exception]) -> None:
    asked = session()
    with pytest.raises(error):
        asked.fit_limits(**{"table": "visits", "epsilon": 1, **change})
    assert asked.remaining() == pure(100)


def test_rows_that_are_people_need_no_limits() -> None:
    with pytest.raises(BadParameter, match="each row"):
        session(None).fit_limits("visits", epsilon=1)
