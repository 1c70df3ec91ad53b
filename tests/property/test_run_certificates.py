"""Tables, synthetic data and models carry their proof: what was drawn is derived again by other code."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.cli import main
from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.dp import approximate, concentrated
from sfumato.dp.mechanisms.gaussian import Gaussian
from sfumato.dp.mechanisms.rounded_gaussian import RoundedGaussian
from sfumato.dp.mechanisms.thresholded_laplace import ThresholdedLaplace
from sfumato.learning import LogisticRegression, NaiveBayes, NeuralNetwork, RandomForest
from sfumato.ledger import Ledger
from sfumato.proof import rules, sealed, verify_certificate
from sfumato.release.guarantee import Guarantee
from sfumato.synthesis import PrivateSynthesis

ROWS = np.random.default_rng(2).uniform(-1, 1, size=(300, 3))
LABELS = (ROWS.sum(axis=1) > 0).astype(int)
FIT: dict[str, Any] = {"epsilon": 2, "delta": 1e-6, "bounds": (-1, 1), "classes": [0, 1], "dataset": "d"}
HOSPITAL = """
sfumato: 1
dataset: d
person: patients
ledger: ledger.db
tables:
  patients:
    data: patients.csv
    key: id
    columns:
      id: {role: identifier}
      age: {role: quasi, kind: integer, domain: {low: 0, high: 99}}
      ill: {role: sensitive, kind: boolean}
  visits:
    data: visits.csv
    links: {patient: patients}
    bounds: {rows: 3, groups: 3}
    columns:
      patient: {role: identifier}
      ward: {role: quasi, kind: category, domain: {values: [east, west]}}
      bill: {role: sensitive, kind: number, domain: {low: 0, high: 500}}
"""
PLANS = {
    "figures": "table: visits\nbudget: {rho: 1/50}\nstatistics: [{of: bill, by: [ward]}]\n",
    "synthetic": "table: visits\nsteps: [private-synthesis: {epsilon: 2, delta: 1e-7}]\n",
    "model": "learn: naive-bayes\nfeatures: [age]\ntarget: ill\nepsilon: 1/2\ndelta: 1e-8\n",
}


def frame(people: int = 400) -> pl.DataFrame:
    draw = np.random.default_rng(1)
    who = np.repeat(np.arange(people), 2)
    return pl.DataFrame({
        "who": who, "age": draw.integers(0, 99, len(who)), "sex": draw.choice(["f", "m"], len(who)),
        "job": draw.choice(["a", "b", "c"], len(who)), "pay": draw.lognormal(3, 1, len(who)).round(2),
    })  # fmt: skip


DOMAINS = {
    "age": {"low": 0, "high": 99}, "sex": {"values": ["f", "m"]}, "job": {"values": ["a", "b", "c"]},
    "pay": {"low": 0, "high": 1000},
}  # fmt: skip


def synthesis(ledger: Ledger, unit: str | None = None, **changes: Any) -> Guarantee:
    step = PrivateSynthesis.build({"epsilon": 2, "delta": "1e-6", "domains": DOMAINS, **changes})
    own = frame() if unit else frame().drop("who")
    data = Data.of(Table(frame=own), Schema.of(own, unit=unit))
    return step.fit(data, ledger=ledger, dataset="d").guarantee


def households(ledger: Ledger) -> Guarantee:
    draw = np.random.default_rng(1)
    of = np.repeat(np.arange(300), draw.integers(1, 5, 300))
    own = pl.DataFrame({"home": of, "age": draw.integers(0, 99, len(of)), "region": [["n", "s"][i % 2] for i in of]})
    step = PrivateSynthesis.build({
        "epsilon": 4, "delta": 1e-6, "domains": {"age": {"low": 0, "high": 99}, "region": {"values": ["n", "s"]}},
        "households": {"columns": ["region"], "max_members": 4},
    })  # fmt: skip
    data = Data.of(Table(frame=own), Schema.of(own, household="home"))
    return step.fit_households(data, ledger=ledger, dataset="d").guarantee


def model(cls: Any, **options: Any) -> Callable[[Ledger], Guarantee]:
    return lambda ledger: cls(**FIT, ledger=ledger, **options).fit(ROWS, LABELS).privacy_


RUNS: dict[str, Callable[[Ledger], Guarantee]] = {
    "synthesis of rows": synthesis,
    "synthesis of people": lambda ledger: synthesis(ledger, "who", max_rows=2),
    "synthesis by a tree": lambda ledger: synthesis(ledger, mechanism="mst"),
    "learned domains": lambda ledger: synthesis(ledger, "who", max_rows=2, learn=0.3, domains={}, epsilon=9),
    "households": households,
    "naive-bayes": model(NaiveBayes),
    "logistic-regression": model(LogisticRegression, max_rows=2),
    "random-forest": model(RandomForest, n_estimators=5),
    "neural-network": model(NeuralNetwork, steps=20, rate=0.2, max_rows=2),
}


def book() -> Ledger:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(20, "1e-3"), dataset="d")
    ledger.kept = True  # as one in a file is
    return ledger


@pytest.fixture(scope="module")
def made() -> dict[str, tuple[dict[str, Any], Ledger]]:
    found = {}
    for name, run in RUNS.items():
        ledger = book()
        certificate = run(ledger).certificate
        assert certificate is not None, name
        found[name] = dict(certificate), ledger
    return found


def entries(ledger: Ledger) -> list[dict[str, Any]]:
    return [entry.to_dict() for entry in ledger.entries()]


def test_runs_have_certificates_in_their_ledger(made: dict[str, tuple[dict[str, Any], Ledger]]) -> None:
    used: set[str] = set()
    for name, (certificate, ledger) in made.items():
        found = verify_certificate(certificate, entries(ledger))
        assert (found.holds, found.ledger, bool(found.signed_by)) == (True, "holds", True), (name, found)
        used |= set(found.rules)
        other = book()
        assert not verify_certificate(certificate, entries(other)).holds
    assert {"S6", "S7", "S8", "S9", "M2", "M4", "M7", "A1", "B7", "B8"} <= used


def draws(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for one in node["over"]:
        if "rule" in one:
            yield one
        else:
            yield from draws(one)


def first(certificate: dict[str, Any], kind: str | None = None) -> dict[str, Any]:
    found = draws(certificate["charges"][0]["run"]["spent"])
    return next(one for one in found if kind in (None, one["measures"]["kind"]))


def less(numbers: dict[str, Any], name: str, factor: float = 0.97) -> None:
    numbers[name] = str(rules.number(numbers[name], name) * rules.Fraction(factor))


MUTANTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "less noise": lambda c: less(first(c)["noise"], "variance"),
    "less noise is drawn": lambda c: less(first(c)["noise"], "drawn"),
    "a smaller loss": lambda c: less(first(c)["loss"], "rho"),
    "more draws": lambda c: first(c).update(times=1000),
    "another measurement": lambda c: first(c)["measures"].update(kind="scores"),
    "another rule": lambda c: first(c)["measures"].update(rule="S1"),
    "a smaller cost": lambda c: less(c["charges"][0]["loss"], "size"),
    "a smaller receipt": lambda c: less(c["charges"][0]["run"]["spent"]["covers"], "rho"),
    "another loss in total": lambda c: less(c["loss"], "size"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_changed_certificate_is_refused(mutant: str, made: dict[str, tuple[dict[str, Any], Ledger]]) -> None:
    for name in ("synthesis of people", "naive-bayes", "neural-network"):
        forged = copy.deepcopy(made[name][0])
        MUTANTS[mutant](forged)
        assert not verify_certificate(sealed(forged)).holds, name


@pytest.mark.parametrize(("field", "value"), [("rows", 1), ("rows", 3), ("bounding", "row"), ("key", "run:other 1"),
                                              ("loss_of", "row")])  # fmt: skip
def test_another_bound_is_refused(field: str, value: object, made: dict[str, tuple[dict[str, Any], Ledger]]) -> None:
    own, ledger = made["synthesis of people"]
    certificate = copy.deepcopy(own)
    certificate["charges"][0]["run"][field] = value
    assert not verify_certificate(sealed(certificate), entries(ledger)).holds


@pytest.mark.parametrize(("name", "kind", "field", "value"), [
    ("synthesis of people", "cells", "of", "units"), ("synthesis of people", "scores", "weight", "1/2"),
    ("naive-bayes", "vectors", "norm", "1"), ("learned domains", "values", "of", "units"),
])  # fmt: skip
def test_a_smaller_reach_is_refused(
    name: str, kind: str, field: str, value: str, made: dict[str, tuple[dict[str, Any], Ledger]]
) -> None:
    forged = copy.deepcopy(made[name][0])
    first(forged, kind)["measures"][field] = value
    assert not verify_certificate(sealed(forged)).holds


@pytest.mark.parametrize(("field", "value"), [("rate", "1/100"), ("steps", "10"), ("squared_mu", "1/10000")])
def test_samples_are_accounted_for(field: str, value: str, made: dict[str, tuple[dict[str, Any], Ledger]]) -> None:
    forged = copy.deepcopy(made["neural-network"][0])
    sampled = forged["charges"][0]["run"]["spent"]
    stated = sampled["exchange"]
    if field == "rate":  # a smaller rate is a smaller loss: what is refused is a larger one
        value = "1/2"
    stated[field] = value
    assert not verify_certificate(sealed(forged)).holds


def understated(cls: Any) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        own = cls.loss_at

        def smaller(self: Any, distance: Any) -> Any:
            loss = own(self, distance)
            curve = loss.composable()
            part = rules.Fraction(97, 100)
            squared = None if curve.gaussian is None else curve.gaussian * part
            return replace(loss, size=loss.size * part, curve=replace(curve, rho=curve.rho * part, gaussian=squared))

        monkeypatch.setattr(cls, "loss_at", smaller)

    return patch


@pytest.mark.parametrize(("cls", "run"), [
    (RoundedGaussian, "naive-bayes"), (RoundedGaussian, "synthesis of rows"), (ThresholdedLaplace, "learned domains"),
])  # fmt: skip
def test_a_mechanism_that_understates_its_loss_is_refused(cls: type, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    understated(cls)(monkeypatch)
    certificate = RUNS[run](book()).certificate
    assert certificate is not None
    assert not verify_certificate(certificate).holds


@pytest.mark.parametrize("kind", sorted(rules.RUNS))
def test_a_rule_that_states_less_is_noticed(
    kind: str, monkeypatch: pytest.MonkeyPatch, made: dict[str, tuple[dict[str, Any], Ledger]]
) -> None:
    """Mutants of the checker: half of what a unit moves. Certificates that hold are refused then."""
    name, rule, mechanisms = rules.RUNS[kind]

    def half(what: rules.Fields, rows: int) -> rules.UnitChange:
        own = rule(what, rows)
        return replace(own, change=own.change / 2)

    certificate = counted_items() if kind == "items" else None
    monkeypatch.setitem(rules.RUNS, kind, (name, half, mechanisms))
    tried = [certificate] if certificate is not None else [one for one, _ in made.values()]
    assert any(not verify_certificate(one).holds for one in tried)


def counted_items() -> dict[str, Any]:
    from sfumato.events import PrivateItemCounts
    from sfumato.masking.base import Context
    from sfumato.rng import Rng

    own = pl.DataFrame({"who": [i // 3 for i in range(900)], "word": [f"w{i % 7}" for i in range(900)]})
    step = PrivateItemCounts.build(
        {"epsilon": 2, "delta": 1e-6, "item": "word", "max_items": 3, "first_threshold": 2, "person": "who"}
    )
    data = Data.of(Table(frame=own), Schema.of(own))
    change = step.apply(data, Context(rng=Rng(1)))
    certificate = change.public["guarantee"]["certificate"]
    assert verify_certificate(certificate).holds
    return dict(certificate)


def test_a_run_without_a_ledger_has_a_certificate_that_says_so() -> None:
    certificate = counted_items()
    assert certificate["charges"][0]["entry"] is None
    assert "signature" not in certificate
    found = verify_certificate(certificate, entries(book()))
    assert (found.holds, "no ledger" in found.reason) == (False, True)


def test_a_draw_that_no_rule_covers_leaves_no_certificate() -> None:
    from sfumato.ledger.charge import Charge
    from sfumato.secret import SecretValue

    run = Charge.of_run(concentrated(1), unit="row", name="counts", public={})
    paid = book().charge(run, dataset="d", analyst="owner")
    Gaussian(variance=2).release(SecretValue(np.array([3])), receipt=paid)
    assert paid.account is not None
    assert paid.account.certificate() is None


@pytest.mark.parametrize("plan", PLANS)
def test_a_release_is_verified_by_its_folder(plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(3)
    people = {"id": range(200), "age": draw.integers(20, 90, 200), "ill": [True, False] * 100}
    pl.DataFrame(people).write_csv(tmp_path / "patients.csv")
    visits = {"patient": draw.integers(0, 200, 900), "ward": ["east", "west", "west"] * 300, "bill": [100.0] * 900}
    pl.DataFrame(visits).write_csv(tmp_path / "visits.csv")
    (tmp_path / "d.yaml").write_text(HOSPITAL)
    (tmp_path / "plan.yaml").write_text(f"sfumato: 1\ndataset: d.yaml\n{PLANS[plan]}")
    assert main(["ledger", "cap", str(tmp_path / "d.yaml"), "--epsilon", "9", "--delta", "1e-5"]) == 0
    more = ["--seconds", "0"] if plan == "model" else ["--unmet"]
    assert main(["protect", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "out"), *more]) in (0, 1)
    ledger = str(tmp_path / "d.yaml")
    found = sfumato.verify(tmp_path / "out", ledger=ledger)
    assert (found.holds, found.ledger) == (True, "holds"), found
    assert "B7" in found.rules
    key = Ledger.open(tmp_path / "ledger.db").signing_key()
    assert sfumato.verify(tmp_path / "out", key=sfumato.proof.signature.public_key(key).hex()).holds
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "out"), "--ledger", ledger]) == 0
    assert "holds" in capsys.readouterr().out
    secret = f"{visits['bill'][0]}"
    assert secret not in str(found.to_dict())
    assert found.beside == "holds"
    assert sfumato.verify(tmp_path / "out").beside == "not checked"
    for name, value in STATED.items():
        changed_guarantee(tmp_path / "out", tmp_path / "changed", {name: value})
        refused = sfumato.verify(tmp_path / "changed")
        assert (refused.holds, refused.node.startswith("guarantee.")) == (False, True), name
    for name in ("model", "replaced", "proof"):
        changed_guarantee(tmp_path / "out", tmp_path / "changed", {name: "another"})
        assert not sfumato.verify(tmp_path / "changed", ledger=ledger).holds, name
    changed_guarantee(tmp_path / "out", tmp_path / "changed", {})
    file = next(one for one in (tmp_path / "changed").rglob("*") if one.is_file() and one.suffix != ".json")
    file.write_bytes(file.read_bytes() + b" ")
    assert "fingerprint" in sfumato.verify(tmp_path / "changed", ledger=ledger).reason


STATED: dict[str, Any] = {"epsilon": 0.001, "unit": "household", "max_rows": 1000, "dataset": "other", "entry": 77}


def changed_guarantee(folder: Path, to: Path, fields: dict[str, Any]) -> None:
    """A copy of a release in which every guarantee that has a certificate states something else."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(folder, to)

    def change(node: Any) -> None:
        if isinstance(node, dict):
            if "epsilon" in node and "certificate" in node:
                node.update(fields)
            for part in node.values():
                change(part)
        elif isinstance(node, list):
            for part in node:
                change(part)

    for path in to.rglob("*.json") if fields else ():
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_group_privacy_is_derived_again(rows: int) -> None:
    """Rows of one person by group privacy: the loss of a row is taken times the square of the rows."""
    from sfumato.dp.contribution_bounds import bound_rows
    from sfumato.ledger.charge import Charge
    from sfumato.secret import MeasuredNumbers, SecretValue

    _, cut = bound_rows(pl.DataFrame({"who": [1, 2]}), "who", rows)
    run = Charge.of_run(concentrated("1/50"), unit="row", name="tables", public={}, bounds=cut)
    ledger = book()
    paid = ledger.charge(run, dataset="d", analyst="owner")
    noise = Gaussian(variance=25)
    noise.release(SecretValue(np.array([3]), measured=MeasuredNumbers(kind="cells")), receipt=paid)
    assert paid.account is not None
    certificate = paid.account.certificate()
    assert certificate is not None
    assert rules.number(certificate["loss"]["size"], "loss") == rules.Fraction(rows**2, 50)
    found = verify_certificate(certificate, entries(ledger))
    assert (found.holds, "G1" in found.rules) == (True, True)
    for change in ({"rows": rows + 1}, {"loss_of": "unit"}) if rows > 1 else ({"rows": 2},):
        forged = copy.deepcopy(certificate)
        forged["charges"][0]["run"].update(change)
        assert not verify_certificate(sealed(forged), entries(ledger)).holds
