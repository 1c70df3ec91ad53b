"""Charges as events of dp_accounting: each states no less than the ledger, and nothing is counted twice or left out."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sfumato.cli import main
from sfumato.dp.loss import PrivacyLoss, approximate, concentrated, pure
from sfumato.ledger.accounts import charge_of
from sfumato.ledger.charge import Charge
from sfumato.ledger.dp_events import dp_event, dp_events
from sfumato.ledger.ledger import Ledger

DELTA = Fraction(1, 10**6)


def charged(*losses: PrivacyLoss, dataset: str = "d") -> Ledger:
    book = Ledger.open(":memory:")
    book.set_cap(approximate(100, "0.1"), dataset=dataset)
    for place, loss in enumerate(losses):
        book.charge(Charge(loss=loss, unit="u", what=f"question {place}"), dataset=dataset, analyst="a")
    return book


def only(book: Ledger) -> Any:
    [event] = [dp_event(entry) for entry in book.entries() if entry.kind == "spend"]
    return event


@pytest.mark.parametrize(("loss", "name"), [
    (pure(Fraction(1, 3)), "EpsilonDeltaDpEvent"), (approximate(Fraction(1, 3), DELTA), "EpsilonDeltaDpEvent"),
    (concentrated(Fraction(1, 7)), "ZCDpEvent"),
])  # fmt: skip
def test_losses_are_stated_and_rounded_up(loss: PrivacyLoss, name: str) -> None:
    event = only(charged(loss))
    assert event["class_name"] == name
    assert event["module_name"] == "dp_accounting.dp_event"
    size = Fraction(event["rho"] if name == "ZCDpEvent" else event["epsilon"])
    assert loss.size <= size <= loss.size * (1 + Fraction(1, 2**50))
    assert Fraction(event.get("delta", 0.0)) >= loss.delta


def test_noise_and_keys_of_answers_are_their_curves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pl.DataFrame({"g": ["x", "y"] * 500, "k": ["many"] * 1000}).write_csv(tmp_path / "a.csv")
    meta = tmp_path / "a.yaml"
    meta.write_text(
        "sfumato: 1\ndataset: d\nledger: l.db\nperson: row\ntables:\n  t:\n    data: a.csv\n    columns:\n"
        "      g: {kind: category, domain: {values: [x, y]}}\n      k: {kind: category}\n"
    )
    assert main(["ledger", "cap", str(meta), "--rho", "5", "--delta", "1e-5"]) == 0
    for sql, cost in (
        ("SELECT COUNT(*) FROM t", ["--epsilon", "1"]),
        ("SELECT COUNT(*) FROM t", ["--epsilon", "1"]),  # answered before
        ("SELECT g, COUNT(*) FROM t GROUP BY g", ["--rho", "1/100"]),
        ("SELECT k, COUNT(*) FROM t GROUP BY k", ["--rho", "1/50", "--delta", "1e-7"]),
    ):
        assert main(["query", str(meta), sql, *cost]) == 0
    capsys.readouterr()
    assert main(["ledger", "export", str(meta), "--events"]) == 0
    [stated] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (stated["dataset"], stated["unit"], stated["event"]["class_name"]) == ("d", "row", "ComposedDpEvent")
    first, second, third = stated["event"]["events"]
    assert (first["class_name"], first["epsilon"], first["delta"]) == ("EpsilonDeltaDpEvent", 1.0, 0.0)
    entries = [entry for entry in Ledger.open(tmp_path / "l.db").entries() if entry.kind == "spend"]
    curves = [charge_of(entry.totals).curve for entry in entries]
    assert second["class_name"] == "GaussianDpEvent"
    squared = curves[1].gaussian
    assert squared is not None
    assert squared <= 1 / Fraction(second["noise_multiplier"]) ** 2 <= squared * (1 + Fraction(1, 10**9))
    assert third["class_name"] == "ComposedDpEvent"
    assert Fraction(third["events"][1]["delta"]) >= curves[2].delta > 0


def test_data_sets_and_units_are_not_added_up() -> None:
    book = charged(pure(1), pure(2))
    book.set_cap(pure(5), dataset="e")
    book.charge(Charge(loss=pure(1), unit="row", what="q"), dataset="e", analyst="a")
    assert [(one["dataset"], one["unit"], len(one["event"]["events"])) for one in dp_events(book.entries())] == [
        ("d", "u", 2), ("e", "row", 1)
    ]  # fmt: skip
