"""Run the steps of a recipe and describe the result in the public manifest of the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sfumato import __version__
from sfumato.attacks import AttackScenario, Discloses
from sfumato.deadline import quiet
from sfumato.evaluation.cross_fit import with_folds
from sfumato.masking.pipeline import MaskingResult
from sfumato.masking.pipeline import protect as run_steps
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Release, Verdict
from sfumato.release.decisions import unchanged_columns
from sfumato.rng import Rng
from sfumato.schema import Dataset
from sfumato.verification.copied_rows import copied_verdict
from sfumato.verification.derived_columns import derived_verdict
from sfumato.verification.people_per_class import people_verdict

__all__ = ["make_release", "release_manifest", "with_control"]

_CONTROLLED = (Discloses.ATTRIBUTE, Discloses.MEMBERSHIP)
"""Kinds of disclosure that are judged by people who are not in the release."""


def make_release(
    recipe: Recipe, data: Dataset, *, rng: Rng, progress: Progress = SILENT
) -> tuple[MaskingResult, Release]:
    """The masked data with its secret row map, and the release as others see it.

    A released column from which a masked one follows adds a failed verdict, and so does an equivalence class with
    fewer than k people. A synthetic release is checked for copies of records.
    """
    protected = run_steps(
        data, steps=recipe.steps, models=recipe.models, rng=rng, order=recipe.order, progress=progress
    )
    table = protected.data.table
    derived = derived_verdict(data, table, lineage=protected.lineage, together=bool(recipe.models))
    people = people_verdict(data, table, recipe.models, lineage=protected.lineage)
    copied = copied_verdict(data.table, table, protected.lineage)
    protected = replace(protected, verdicts=(*protected.verdicts, *people, *derived, *copied))
    manifest = release_manifest(
        recipe,
        columns=table.columns,
        rows=table.rows,
        steps=[step.public() for step in protected.steps],
        verdicts=protected.verdicts,
        unchanged=unchanged_columns(data.table, table, protected.lineage),
    )
    return protected, Release(table=table, manifest=manifest)


def with_control(
    recipe: Recipe, scenario: AttackScenario, *, rng: Rng, seconds: float, progress: Progress = SILENT
) -> AttackScenario:
    """The scenario with a control group by cross-fitting, where the attacks of the recipe need one.

    ``seconds`` is the time that the recipe took; a slow one is not applied again.
    """
    if recipe.attacks and not any(attack.discloses in _CONTROLLED for attack in recipe.attacks):
        return scenario

    rehearsal = replace(recipe, steps=tuple(step.rehearsed() for step in recipe.steps))

    def of_fold(kept: Dataset, own: Rng) -> AttackScenario:
        protected, release = make_release(rehearsal, kept, rng=own, progress=quiet(progress))
        return AttackScenario(original=kept, release=release, lineage=protected.lineage)

    return with_folds(scenario, of_fold, rng=rng, progress=progress, seconds=seconds)


def release_manifest(
    recipe: Recipe,
    *,
    columns: Sequence[str],
    rows: int,
    steps: Sequence[Mapping[str, Any]],
    verdicts: Sequence[Verdict],
    unchanged: Sequence[str] | None = None,
) -> dict[str, Any]:
    """How the release was made and which models hold. Contains no count of the original.

    ``unchanged`` are the columns that leave as they are; None if that was not compared.
    """
    public = recipe.public()
    return {
        "sfumato": __version__,
        "recipe": public,
        "columns": {name: column for name, column in public["columns"].items() if name in columns},
        **({} if unchanged is None else {"unchanged": list(unchanged)}),
        "models": public["models"],
        "steps": list(steps),
        "verdicts": [{"model": v.model, "state": str(v.state), "wanted": v.wanted} for v in verdicts],
        "order": recipe.order,
        "rows": rows,
    }
