"""One cell of a study: one candidate, one seed. Masked, attacked, measured; the outcome is plain data."""

from __future__ import annotations

import time
from typing import Any

from sfumato import __version__
from sfumato.attacks import AttackScenario, Outcome, default_attacks, evaluate_attack
from sfumato.errors import NotApplicable, SfumatoError
from sfumato.masking.pipeline import protect
from sfumato.measures import ReleasePair, judge
from sfumato.recipe import Recipe
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.schema import Dataset

__all__ = ["run_cell"]


def run_cell(recipe: Recipe, data: Dataset, *, tries: int) -> dict[str, Any]:
    """Make the release of a recipe, attack and measure it. A refusal is an outcome, not an end of the study."""
    begin = time.perf_counter()
    try:
        found = _run(recipe, data, tries)
    except SfumatoError as refusal:
        found = {"refused": refusal.code, "reason": str(refusal), "attacks": [], "measures": [], "verdicts": []}
    return {**found, "seconds": round(time.perf_counter() - begin, 3)}


def _run(recipe: Recipe, data: Dataset, tries: int) -> dict[str, Any]:
    rng = Rng(recipe.seed)
    done = protect(data, steps=recipe.steps, models=recipe.models, rng=rng, order=recipe.order)
    public = recipe.public()
    manifest = {
        "sfumato": __version__,
        "recipe": public,
        "columns": {name: entry for name, entry in public["columns"].items() if name in done.data.table.columns},
        "models": public["models"],
        "steps": [step.public() for step in done.steps],
        "order": recipe.order,
        "rows": done.data.rows,
    }
    release = Release(table=done.data.table, manifest=manifest)
    scenario = AttackScenario(original=data, release=release, lineage=done.lineage)
    attacks: list[dict[str, Any]] = []
    for number, attack in enumerate(recipe.attacks or default_attacks(scenario)):
        try:
            outcome: Outcome = evaluate_attack(attack, scenario, rng=rng.child("attacks", number), tries=tries)
            attacks.append(outcome.to_dict())
        except NotApplicable as refusal:
            attacks.append(
                {"attack": attack.part_name(), "discloses": str(attack.discloses), "risk": None, "reason": str(refusal)}
            )
    pair = ReleasePair(original=data, release=release, lineage=done.lineage)
    measures = []
    for number, measure in enumerate(recipe.measures):
        found = judge(measure, pair, rng=rng.child("measures", number)).to_dict()
        found.pop("detail", None)
        measures.append({**found, "about": str(measure.about), "better": measure.better})
    return {
        "rows": done.data.rows,
        "attacks": attacks,
        "measures": measures,
        "verdicts": [verdict.to_dict() for verdict in done.verdicts],
    }
