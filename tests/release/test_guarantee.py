"""Guarantees: one shape for all families, which survives JSON, and what a README says of it."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.cli import main
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import approximate, concentrated, pure
from sfumato.errors import BadParameter
from sfumato.release.guarantee import Guarantee, guarantees_of

RECIPE = """
sfumato: 1
data: people.csv
columns:
  age: {role: quasi, kind: number, domain: {low: 0, high: 100}}
  job: {role: quasi, kind: category, domain: {values: [nurse, smith]}}
steps:
  - private-synthesis: {epsilon: 1, delta: 1.0e-6}
"""


@pytest.mark.parametrize(
    "loss",
    [
        pure("1/3"),
        approximate("0.1", "1e-6"),
        replace(approximate(1, "1e-6"), curve=gaussian_curve(Fraction(1, 7))),
        replace(approximate(1, "1e-6"), curve=replace(gaussian_curve(Fraction(1, 7)), delta=Fraction(1, 10**9))),
    ],
    ids=str,
)
def test_a_guarantee_survives_json(loss: object) -> None:
    stated = Guarantee(loss=loss, unit="person", max_rows=4, proof="a theorem", entry=3, dataset="town",  # type: ignore[arg-type]
                       parameters={"public": ["bounds"], "threshold": 7.5})  # fmt: skip
    again = Guarantee.from_dict(json.loads(json.dumps(stated.to_dict())))
    assert again == stated
    assert again.to_dict() == stated.to_dict()
    assert again.membership_bound == stated.membership_bound
    assert guarantees_of({"steps": [{"step": "a"}, {"guarantee": stated.to_dict()}]}) == (stated,)


def test_a_guarantee_states_an_epsilon() -> None:
    with pytest.raises(BadParameter):
        Guarantee(loss=concentrated(1), unit="row", proof="a theorem")


def test_replacing_a_unit_is_removing_one_and_adding_one() -> None:
    stated = Guarantee(loss=approximate(1, "1e-6"), unit="person", proof="a theorem")
    assert stated.to_dict()["replaced"] == {"epsilon": 2.0, "delta": pytest.approx(2 * 2.718281828459045e-6, rel=1e-9)}
    assert dict(stated.section())["If one unit is replaced by another"] == "epsilon at most 2, delta at most 5.44e-06"
    alone = Guarantee(loss=pure("1/2"), unit="row", proof="a theorem")
    assert dict(alone.section())["If one unit is replaced by another"] == "epsilon at most 1"


def test_the_bound_on_membership_counts_the_delta_of_the_curve() -> None:
    clean = replace(approximate(50, "1e-6"), curve=gaussian_curve(Fraction(1)))
    curve = replace(gaussian_curve(Fraction(1)), delta=Fraction(1, 100))
    bounds = [
        Guarantee(loss=one, unit="row", proof="p").membership_bound for one in (clean, replace(clean, curve=curve))
    ]
    assert bounds[1] == pytest.approx(bounds[0] + 0.01)


def test_the_readme_of_a_private_release_does_not_understate_its_guarantee(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + n % 60},{'nurse' if n % 3 else 'smith'}" for n in range(300)]
    Path("people.csv").write_text("age,job\n" + "\n".join(rows) + "\n")
    Path("sfumato.yaml").write_text(RECIPE)
    assert main(["protect", "sfumato.yaml", "--out", "release", "--targets", "10"]) == 0
    text = Path("release/README.md").read_text()
    assert "any attacker, whatever they know beside it" in text
    assert "attacker who knows more" not in text
    assert "Not covered: conclusions about groups" in text
