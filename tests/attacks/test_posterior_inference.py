"""Secrets weighed by the likelihood of a masking: stronger than neighbours, honest where nothing is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import Attack, AttackScenario, Outcome, default_attacks, evaluate_attack
from sfumato.attacks.inference.attribute_linkage import AttributeLinkage
from sfumato.attacks.inference.model_inference import ModelInference
from sfumato.attacks.inference.posterior_inference import PosteriorInference
from sfumato.attacks.posterior.secrets import _estimate_prior
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Context, Step
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.stats import wilson

DATA = Path(__file__).parents[1] / "samples" / "sdcmicro"


def companies(file: str, known: int) -> Data:
    """The first columns are known to the adversary, the last one is sensitive."""
    frame = pl.read_csv(DATA / file).select(pl.selectors.numeric())
    names = (*frame.columns[:known], frame.columns[-1])
    roles = dict.fromkeys(names, Column(role=Role.QUASI)) | {names[-1]: Column(role=Role.SENSITIVE)}
    return Data.of(Table(frame=frame.select(names)), Schema(columns=roles))


def masked(data: Data, method: str, **parameters: Any) -> AttackScenario:
    step = registry("method").get(method).build(parameters)
    assert isinstance(step, Step)
    change = step.apply(data, Context(rng=Rng(11)))
    said = {"step": method, "parameters": step.public(), "truthful": step.truthful, **change.public}
    return AttackScenario(original=data, release=Release(table=change.table, manifest={"steps": [said]}), aligned=True)


def run(attack: Attack, where: AttackScenario) -> Outcome:
    return evaluate_attack(attack, where, rng=Rng(5))


@pytest.mark.parametrize("file", ["CASCrefmicrodata.csv", "Tarragona.csv"])
@pytest.mark.parametrize(
    ("method", "parameters", "more"),
    [
        ("rank-swap", {"p": 2}, 0.05),
        ("rank-swap", {"p": 10}, 0.1),
        ("noise", {"variance_ratio": 0.1}, 0.01),
        ("microaggregate", {"k": 5}, 0.05),
    ],
    ids=["swap 2", "swap 10", "noise", "groups"],
)
def test_more_secrets_are_found_than_by_neighbours(
    file: str, method: str, parameters: dict[str, Any], more: float
) -> None:
    """Masked quasi-identifiers, the secret as it is: by so many points more than by the better of two models."""
    data = companies(file, 3)
    where = masked(data, method, columns=list(data.quasi), **parameters)
    weighed = run(PosteriorInference(tolerance=0.05), where)
    others = [
        run(ModelInference(tolerance=0.05, model="neighbours", neighbours=count), where).main.rate for count in (1, 5)
    ]
    assert weighed.main.rate > max(others) + more
    assert weighed.main.rate > weighed.baseline.rate + 0.05
    assert weighed.detail["secret perturbed"] is False


def test_an_amount_that_was_swapped_itself_is_told_from_its_neighbours() -> None:
    data = companies("Tarragona.csv", 5)
    where = masked(data, "rank-swap", p=2, columns=list(data.sensitive))
    weighed = run(PosteriorInference(tolerance=0.05), where)
    assert weighed.detail["secret perturbed"] is True
    assert weighed.main.rate > run(AttributeLinkage(tolerance=0.05), where).main.rate + 0.05


def test_a_rare_illness_is_not_believed_when_randomization_explains_it() -> None:
    """Of 1,000 people 20 are ill; PRAM keeps 70 %. Most who are shown as ill are not, and Bayes' rule knows it."""
    draw = np.random.default_rng(4)
    frame = pl.DataFrame({"x": draw.normal(size=1000), "ill": np.where(np.arange(1000) < 20, "yes", "no")})
    data = Data.of(Table(frame=frame), Schema(columns={"x": Column(role="quasi"), "ill": Column(role="sensitive")}))
    where = masked(data, "pram", keep=0.7, columns=["ill"])
    weighed = run(PosteriorInference(), where)
    assert weighed.main.rate > 0.97
    assert run(ModelInference(model="nearest"), where).main.rate < 0.75


def test_the_channel_is_turned_around_by_bayes_rule() -> None:
    """With the frequencies 0.9 and 0.1 and 80 % kept, 0.08 / 0.26 of those shown the rare value have it."""
    forward = np.array([[0.8, 0.2], [0.2, 0.8]])
    prior, learned = _estimate_prior(1000 * forward, np.array([0.74, 0.26]), smooth=False)
    assert prior == pytest.approx([0.9, 0.1], abs=0.01)
    assert learned == pytest.approx(forward)


@pytest.mark.parametrize("method", ["rank-swap", "noise"])
def test_an_unrelated_release_gives_the_baseline(method: str) -> None:
    """Secrets in random order: a share beyond the baseline's 99.99 % interval fails."""
    data = companies("CASCrefmicrodata.csv", 4)
    frame = data.table.frame.with_columns(pl.col(data.sensitive[0]).shuffle(seed=3))
    parameters = {"p": 5} if method == "rank-swap" else {"variance_ratio": 0.05}
    made = masked(Data(table=Table(frame=frame), schema=data.schema), method, columns=list(data.quasi), **parameters)
    outcome = run(PosteriorInference(tolerance=0.05), AttackScenario(original=data, release=made.release, aligned=True))
    assert outcome.main.rate <= wilson(outcome.baseline.hits, outcome.baseline.trials, 0.9999)[1]
    strange = data.table.frame.select(
        pl.col(name).shuffle(seed=7 + place) for place, name in enumerate(data.table.columns)
    )
    outcome = run(
        PosteriorInference(tolerance=0.05),
        AttackScenario(
            original=data,
            release=Release(table=Table(frame=strange), manifest=made.release.manifest),
            aligned=True,
        ),
    )
    assert outcome.main.rate <= wilson(outcome.baseline.hits, outcome.baseline.trials, 0.9999)[1]


def test_the_battery_weighs_each_secret_that_a_step_can_tell_of() -> None:
    data = companies("Tarragona.csv", 3)
    by_known = default_attacks(masked(data, "rank-swap", p=5, columns=list(data.quasi)))
    by_secret = default_attacks(masked(data, "rank-swap", p=5, columns=list(data.sensitive)))
    for chosen in (by_known, by_secret):
        [found] = [attack for attack in chosen if isinstance(attack, PosteriorInference)]
        assert (found.secret, found.tolerance) == (data.sensitive[0], 0.05)
    untouched = AttackScenario(original=data, release=Release(table=data.table, manifest={}), aligned=True)
    assert run(PosteriorInference(tolerance=0.05), untouched).main.rate > 0.9
    coarse = Release(table=data.table, manifest={"steps": [{"step": "generalize", "truthful": True}]})
    true = AttackScenario(original=data, release=coarse, aligned=True)
    assert not any(isinstance(attack, PosteriorInference) for attack in default_attacks(true))


def test_groups_formed_with_a_column_that_nobody_knows_are_weighed_with_it() -> None:
    """The secret was aggregated together with what is known. Masked as if it had not been, under 3 % would be found."""
    data = companies("CASCrefmicrodata.csv", 5)
    where = masked(data, "microaggregate", k=5, columns=[*data.quasi, *data.sensitive])
    assert run(PosteriorLinkage(), where).main.rate > 0.09
    assert run(PosteriorInference(tolerance=0.05), where).main.rate > 0.25


def test_who_knows_few_makes_up_people_to_see_how_groups_move_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """An aggregated release stays as it is when it is aggregated again, and would teach that nothing moves.

    Nobody can be right about more than one in five.
    """
    draw = np.random.default_rng(2)
    frame = pl.DataFrame({name: draw.normal(size=1500).round(4) for name in "abcd"})
    schema = Schema(columns=dict.fromkeys("abcd", Column(role=Role.QUASI)))
    everybody = masked(Data.of(Table(frame=frame), schema), "microaggregate", k=5)
    where = replace(everybody, targets=np.arange(700))
    few = evaluate_attack(PosteriorLinkage(), where, rng=Rng(5))
    assert few.main.rate > 0.08
    monkeypatch.setattr("sfumato.attacks.likelihood._SYNTHETIC_FILES", 0)
    assert evaluate_attack(PosteriorLinkage(), where, rng=Rng(5)).main.rate < 0.03


@pytest.mark.parametrize("form", ["difference", "ratio", "product"])
def test_a_masked_secret_is_computed_from_released_columns(form: str) -> None:
    """A script links by the code and computes the secret; of the differences 42 % are zero and 0.5 % exceptions."""
    draw = np.random.default_rng(8)
    frame = pl.DataFrame(
        {
            "code": draw.integers(0, 3000, 600),
            "a": draw.lognormal(10, 1, 600).round(),
            "b": draw.integers(1, 40, 600).astype(float),
            "c": draw.integers(2, 30, 600).astype(float),
            "zero": np.where(draw.random(600) < 0.42, 0.0, draw.integers(1, 5000, 600)),
            "odd": draw.random(600) < 0.005,
        }
    )
    a, b, c = (pl.col(name) for name in "abc")
    secrets = {
        "difference": pl.when("odd").then(17.0).otherwise("zero"),
        "ratio": (a - 1000 * b) / c,
        "product": a * b / c,
    }
    frame = frame.with_columns(a=a + pl.col("zero"), b=a) if form == "difference" else frame
    frame = frame.with_columns(secret=secrets[form]).drop("zero", "odd")
    roles = {"code": Column(role=Role.QUASI), "secret": Column(role=Role.SENSITIVE)}
    data = Data.of(Table(frame=frame), Schema(columns=roles))
    where = masked(data, "noise", variance_ratio=1.0, columns=["secret"])
    formula = {"difference": a - b, "ratio": (a - 1000 * b) / c, "product": a * b / c}[form]
    rows = where.release.table.frame.with_columns(guess=formula).unique("code", keep="any", maintain_order=True)
    guess = frame.join(rows.select("code", "guess"), on="code", maintain_order="left")["guess"]
    right = (guess - frame["secret"]).abs() <= 0.05 * frame["secret"].abs() + 1e-9
    found = run(PosteriorInference(tolerance=0.05), where)
    assert wilson(found.main.hits, found.main.trials, 0.99)[1] >= right.mean() > 0.8  # type: ignore[operator]
    assert set(found.detail["computed from"]) == {*"abc"} - ({"c"} if form == "difference" else set())
    unknown = run(PosteriorInference(tolerance=0.05, transparent=False), where)
    assert unknown.main.rate < 0.6
