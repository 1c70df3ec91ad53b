"""Attacks by likelihood share one simulation of the masking and give the same results as alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import sfumato
from sfumato.attacks import AttackScenario, Outcome, evaluate_attack, shared_simulations
from sfumato.attacks.inference.posterior_inference import PosteriorInference
from sfumato.attacks.record_linkage.posterior_linkage import PosteriorLinkage
from sfumato.dataset import Data
from sfumato.evaluation import make_release, run_attacks
from sfumato.progress import SILENT
from sfumato.recipe import Recipe
from sfumato.rng import Rng


def _scenario() -> AttackScenario:
    draw = np.random.default_rng(2)
    frame = pl.DataFrame({name: draw.normal(50, 10, 300).round(1) for name in ("one", "two", "three")})
    frame = frame.with_columns(ill=pl.Series(draw.choice(["no", "yes"], 300)))
    columns = {"one": "quasi", "two": "quasi", "three": "quasi", "ill": "sensitive"}
    # A step without a stated channel.
    steps = [{"swap": {"rate": 0.5, "columns": ["one", "two"]}}]
    recipe = Recipe.parse({"sfumato": 1, "columns": columns, "steps": steps})
    data = Data.of(sfumato.read(frame), recipe.schema)
    made = make_release(recipe, data, rng=Rng(1))
    protected, release = made.masked, made.release
    return AttackScenario(original=data, release=release, lineage=protected.lineage)


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry per simulated masking."""
    calls: list[int] = []
    plain = shared_simulations.mask_again

    def counted(*arguments: Any) -> Any:
        calls.append(1)
        return plain(*arguments)

    monkeypatch.setattr(shared_simulations, "mask_again", counted)
    return calls


def test_the_masking_is_simulated_once_for_all_attacks(masked: list[int]) -> None:
    scenario, rounds = _scenario(), 400
    attacks = [PosteriorLinkage(), PosteriorInference(secret="ill")]
    outcomes = run_attacks(scenario, attacks, rng=Rng(3), n_targets=300, progress=SILENT)
    assert all(isinstance(outcome, Outcome) for outcome in outcomes)
    assert len(masked) == rounds
    alone = evaluate_attack(attacks[0], scenario, rng=Rng(3).child("attacks", 0), n_targets=300)
    assert len(masked) == 2 * rounds
    assert isinstance(outcomes[0], Outcome)
    assert alone.main == outcomes[0].main


def test_other_steps_and_other_files_are_other_simulations() -> None:
    scenario = _scenario()
    steps = [sfumato.registry.registry("method").get("noise").build({"variance_ratio": share}) for share in (0.1, 0.2)]
    other = scenario.original.with_frame(scenario.original.table.frame.head(200))
    shuffled = scenario.original.with_frame(scenario.original.table.frame.sample(fraction=1, shuffle=True, seed=1))
    with shared_simulations.shared_simulations():
        first = shared_simulations.masking_rounds(scenario.original, steps[:1])
        assert shared_simulations.masking_rounds(shuffled, steps[:1]) is first
        assert shared_simulations.masking_rounds(scenario.original, steps[1:]) is not first
        assert shared_simulations.masking_rounds(other, steps[:1]) is not first
        masked, origin = first.round(0, SILENT)
        assert masked.height == len(origin) == 300
    assert shared_simulations.masking_rounds(scenario.original, steps[:1]) is not first
