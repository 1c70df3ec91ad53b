"""Of the guesses that the adversary calls 80 % probable, about 80 % are right."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.masking.base import Step
from sfumato.masking.pipeline import protect
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng

NAMES = ("a", "b", "c", "d")


def stated(steps: list[dict[str, Any]], published: dict[str, float] | None = None) -> list[dict[str, float]]:
    """The calibration of an attack; ``published`` are wrong parameters of the first step."""
    frame = pl.DataFrame(np.random.default_rng(2).normal(size=(600, 4)), schema=NAMES)
    original = Data.of(Table(frame=frame), Schema(columns={name: Column(role="quasi") for name in NAMES}))
    made = protect(original, steps=[registry("method").part(step, Step) for step in steps], rng=Rng(4))
    first, *others = [step.public() for step in made.steps]
    first = {**first, "parameters": {**first["parameters"], **(published or {})}}
    release = Release(table=made.data.table, manifest={"steps": [first, *others]})
    where = AttackScenario(original=original, release=release, lineage=made.lineage)
    found = evaluate_attack(PosteriorLinkage(), where, rng=Rng(1)).detail["calibration"]
    assert sum(one["guesses"] for one in found) == 600
    return list(found)


def errors(found: list[dict[str, float]]) -> list[float]:
    """By how many standard errors the shares differ from what was stated. A matching exchanges rows in pairs, so that
    the variance is twice that of independent guesses."""
    return [
        abs(one["right"] - one["stated"]) / np.sqrt(2 * max(one["stated"] * (1 - one["stated"]), 0.01) / one["guesses"])
        for one in found
        if one["guesses"] >= 20
    ]


@pytest.mark.parametrize(
    "steps",
    [
        [{"noise": {"variance_ratio": 0.05}}],
        [{"rank-swap": {"p": 20}}],
        [{"rank-swap": {"p": 5}}, {"noise": {"variance_ratio": 0.01}}],
    ],
    ids=["noise", "rank swap", "rank swap and noise"],
)
def test_stated_probabilities_are_shares_of_right_guesses(steps: list[dict[str, Any]]) -> None:
    found = errors(stated(steps))
    assert len(found) >= 3
    assert max(found) < 4


def test_a_wrong_channel_is_not_calibrated() -> None:
    """With a sixteenth of the variance of the noise the adversary is too sure."""
    assert max(errors(stated([{"noise": {"variance_ratio": 0.05}}], {"variance_ratio": 0.003}))) > 6
