"""Charges: bounds that a run enforces, losses of rows that become losses of people, and group privacy."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.cli import main
from sfumato.dp.analytic_gaussian import normal_delta
from sfumato.dp.contribution_bounds import Enforced, Promised, bound_rows
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, concentrated, pure
from sfumato.errors import BadParameter, NoReceipt, UnitsDiffer
from sfumato.ledger import Charge, Ledger

VISITS = pl.DataFrame({"person": ["a"] * 9 + ["b", "c", None], "x": range(12)})


def book(cap: PrivacyLoss) -> Ledger:
    ledger = Ledger.unkept()
    ledger.set_cap(cap, dataset="visits")
    return ledger


def test_only_cutting_makes_an_enforced_bound() -> None:
    with pytest.raises(BadParameter, match="cutting"):
        Enforced("person", 3)
    kept, bounds = bound_rows(VISITS, "person", 3)
    assert sorted(kept["person"].to_list()) == ["a", "a", "a", "b", "c"]
    assert (bounds.unit, bounds.rows) == ("person", 3)


def test_a_loss_of_rows_becomes_one_of_people_where_the_run_cut_at_the_bound() -> None:
    ledger, (_, cut) = book(concentrated(2)), bound_rows(VISITS, "person", 3)
    charge = Charge(loss=concentrated("1/9"), unit="row", what="tables", bounds=cut)
    receipt = ledger.charge(charge, dataset="visits", analyst="owner")
    assert ledger.balance(dataset="visits").spent == concentrated(1)
    assert ledger.unit("visits") == "person"
    with pytest.raises(NoReceipt):
        receipt.use(concentrated("1/8"))  # mechanisms may use the loss of a row, and no more
    receipt.use(concentrated("1/9"))
    assert [entry.bounds for entry in ledger.entries()][-1] == "cut at 3 per person"
    ledger.verify()


def test_a_promise_does_not_turn_rows_into_people() -> None:
    promised = Promised(unit="person", rows=3, by="the caller")
    with pytest.raises(BadParameter, match="cuts at the bound"):
        Charge(loss=pure(1), unit="row", what="tables", bounds=promised)
    known = Charge(loss=pure(1), unit="person", what="a model", bounds=promised)
    ledger = book(pure(2))
    ledger.charge(known, dataset="visits", analyst="owner")
    assert "not cut" in [entry.bounds for entry in ledger.entries()][-1]
    with pytest.raises(UnitsDiffer):
        ledger.charge(Charge(loss=pure("1/2"), unit="row", what="rows"), dataset="visits", analyst="owner")


def test_a_bound_is_about_the_unit_of_the_loss() -> None:
    _, cut = bound_rows(VISITS, "person", 3)
    with pytest.raises(UnitsDiffer):
        Charge(loss=pure(1), unit="edge", what="q", bounds=cut)


def test_group_privacy_of_each_measure() -> None:
    assert pure("1/2").for_group(4) == pure(2)
    assert concentrated("1/2").for_group(3) == concentrated("9/2")
    assert gaussian_curve(Fraction(1, 4)).for_group(4) == gaussian_curve(Fraction(4))
    loss = approximate(1, "1e-9").for_group(3)
    assert loss.size == 3
    assert float(loss.delta) == pytest.approx(3 * 2.718281828459045**2 * 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    squared=st.fractions(min_value="1/100", max_value=4, max_denominator=100),
    epsilon=st.fractions(min_value="1/100", max_value=3, max_denominator=100),
    k=st.integers(min_value=1, max_value=6),
)
def test_group_privacy_covers_normal_noise_at_k_distances(squared: Fraction, epsilon: Fraction, k: int) -> None:
    """Normal noise at distance mu is (epsilon, delta)-private; k steps are a distance of k·mu, whose delta is known."""
    one = approximate(epsilon, normal_delta(squared, epsilon))
    assert normal_delta(squared * k**2, epsilon * k) <= one.for_group(k).delta


PLAN = """
sfumato: 1
dataset: visits
data: visits.csv
ledger: ledger.db
unit: %s
bounds: {rows: 3}
columns:
  who: {role: identifier}
  pay: {role: quasi, domain: {low: 0, high: 100}}
  job: {role: quasi, domain: {values: [a, b]}}
statistics: [{of: pay, by: [job]}]
budget: {rho: 1/2}
"""


def test_tables_about_people_share_a_ledger_with_everything_else_about_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pl.DataFrame({"who": [n % 20 for n in range(100)], "pay": range(100), "job": ["a", "b"] * 50})
    rows.write_csv(tmp_path / "visits.csv")
    ledger = Ledger.open(tmp_path / "ledger.db")
    ledger.set_cap(concentrated(2), dataset="visits")
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN % "who")
    assert main(["protect", str(plan), "--out", str(tmp_path / "out"), "--json"]) == 0
    guarantee = json.loads(capsys.readouterr().out)["guarantee"]
    assert (guarantee["unit"], guarantee["max_rows"], guarantee["rho"]) == ("who", 3, 0.5)
    assert ledger.balance(dataset="visits").spent == concentrated("1/2")
    assert ledger.unit("visits") == "who"
    plan.write_text(PLAN % "row")
    assert main(["protect", str(plan), "--out", str(tmp_path / "rows"), "--json"]) == 2
    assert ledger.balance(dataset="visits").spent.measure is PrivacyMeasure.RHO
