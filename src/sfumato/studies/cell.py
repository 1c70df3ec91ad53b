"""One cell of a study: one candidate under one seed, masked, attacked and measured."""

from __future__ import annotations

import time
from typing import Any

from sfumato.attacks import AttackScenario
from sfumato.errors import SfumatoError
from sfumato.evaluation import evaluate, make_release, with_control
from sfumato.recipe import Recipe
from sfumato.rng import Rng
from sfumato.schema import Dataset

__all__ = ["run_cell"]


def run_cell(recipe: Recipe, data: Dataset, *, n_targets: int) -> dict[str, Any]:
    """Make and evaluate the release of a recipe. A refusal is a result of the cell and does not stop the study."""
    begin = time.perf_counter()
    try:
        cell = _run(recipe, data, n_targets)
    except SfumatoError as refusal:
        cell = {"refused": refusal.code, "reason": str(refusal), "attacks": [], "measures": [], "verdicts": []}
    return {**cell, "seconds": round(time.perf_counter() - begin, 3)}


def _run(recipe: Recipe, data: Dataset, n_targets: int) -> dict[str, Any]:
    rng = Rng(recipe.seed)
    begin = time.perf_counter()
    protected, release = make_release(recipe, data, rng=rng)
    scenario = AttackScenario(original=data, release=release, lineage=protected.lineage)
    evaluation = evaluate(
        with_control(recipe, scenario, rng=rng, seconds=time.perf_counter() - begin),
        attacks=recipe.attacks,
        measures=recipe.measures,
        verdicts=protected.verdicts,
        rng=rng,
        n_targets=n_targets,
        attribute_columns=False,
        any_columns=False,
    )
    results = evaluation.to_dict()
    return {
        "rows": release.table.rows,
        "attacks": results["attacks"],
        "measures": [
            {**{key: value for key, value in entry.items() if key != "detail"}, "about": str(measure.about)}
            | {"better": measure.better}
            for measure, entry in zip(recipe.measures, results["measures"], strict=True)
        ],
        "verdicts": results["verdicts"],
    }
