"""Percent of secrets found within 5 %, by the posterior and by models, on masked Census and Tarragona files.

python benchmarks/attribute_inference.py [--record]

The first three columns are known of everybody, the last one is sought. One masking each.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import polars as pl
from record import Figures

from sfumato.attacks import Attack, AttackScenario, evaluate_attack
from sfumato.attacks.inference.model_inference import ModelInference
from sfumato.attacks.inference.posterior_inference import PosteriorInference
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.base import Context, Step
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng

DATA = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rank-swap", {"p": 2}),
    ("rank-swap", {"p": 10}),
    ("noise", {"variance_ratio": 0.01}),
    ("noise", {"variance_ratio": 0.1}),
    ("microaggregate", {"k": 5}),
)
ATTACKS: tuple[Attack, ...] = (
    PosteriorInference(tolerance=0.05),
    *(ModelInference(tolerance=0.05, model=name) for name in ("nearest", "neighbours", "boosting")),
)


def main() -> None:
    names = ("posterior", "nearest row", "5 neighbours", "boosting")
    forms = {"file": "", "masked": "", "method": "", "most frequent": ".1f"} | dict.fromkeys(names, ".1f")
    figures = Figures("attribute_inference", "shares", forms)
    for file in ("CASCrefmicrodata", "Tarragona"):
        frame = pl.read_csv(DATA / f"{file}.csv").select(pl.selectors.numeric())
        known, secret = frame.columns[:3], frame.columns[-1]
        roles = {name: Column(role=Role.QUASI) for name in known} | {secret: Column(role=Role.SENSITIVE)}
        data = Data.of(Table(frame=frame.select([*known, secret])), Schema(columns=roles))
        for masked in ("known", "secret", "both"):
            columns = {"known": known, "secret": [secret], "both": [*known, secret]}[masked]
            for method, parameters in METHODS:
                step = registry("method").get(method).build({**parameters, "columns": columns})
                assert isinstance(step, Step)
                change = step.apply(data, Context(rng=Rng(11)))
                said = {"step": method, "parameters": step.public(), "truthful": step.truthful, **change.public}
                release = Release(table=change.table, manifest={"steps": [said]})
                scenario = AttackScenario(original=data, release=release, aligned=True)
                found = [evaluate_attack(attack, scenario, rng=Rng(5)) for attack in ATTACKS]
                assert found[0].baseline is not None
                shares = {name: 100 * outcome.main.rate for name, outcome in zip(names, found, strict=True)}
                setting = ", ".join(f"{key} = {value}" for key, value in parameters.items())
                shares["most frequent"] = 100 * found[0].baseline.rate
                figures.add(file=file, masked=masked, method=f"{method}, {setting}", **shares)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
