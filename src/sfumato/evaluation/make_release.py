"""Run the steps of a recipe and describe the result in the public manifest of the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato import __version__
from sfumato.attacks import AttackScenario, Discloses
from sfumato.dataset import Data
from sfumato.dataset.rows import Rows
from sfumato.deadline import quiet
from sfumato.evaluation.check import Subject, paired_rows, run_checks
from sfumato.evaluation.cross_fit import with_folds
from sfumato.evaluation.evaluation import Evaluation, evaluate
from sfumato.evaluation.limits import limit_of
from sfumato.masking.pipeline import MaskedRun, MaskingResult
from sfumato.masking.pipeline import protect as run_steps
from sfumato.measures import default_measures
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release, Verdict
from sfumato.release.decisions import unchanged_columns
from sfumato.release.public_folder import promised
from sfumato.rng import Rng

_CONTROLLED = (Discloses.ATTRIBUTE, Discloses.MEMBERSHIP)
"""Kinds of disclosure that are judged by people who are not in the release."""


@dataclass(frozen=True, kw_only=True)
class Made:
    """A release that was made, with everything its owner knows about it."""

    masked: MaskingResult
    release: Release
    judged: JudgedRun

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Those of every check."""
        return self.judged.verdicts


def make_release(recipe: Recipe, data: Data, *, rng: Rng, progress: Progress = SILENT) -> Made:
    """The masked data with its secret row map, the release as others see it, and its verdicts.

    The verdicts are those of every registered check (:mod:`sfumato.evaluation.check`). Steps with a guarantee charge
    the account of the recipe; what never leaves is made with :meth:`Recipe.uncharged`.
    """
    masked = run_steps(
        data, steps=recipe.steps, models=recipe.models, rng=rng, order=recipe.order, account=recipe.account,
        progress=progress,
    )  # fmt: skip
    judged = judge_run(recipe, masked, original=data, release=masked.data, lineage=masked.lineage)
    release = Release(table=masked.data.table.with_labels_in_use(), manifest=judged.manifest)
    return Made(masked=masked, release=release, judged=judged)


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A run with the verdict of every check and the public manifest of its release."""

    subject: Subject
    verdicts: tuple[Verdict, ...]
    manifest: dict[str, Any]


def judge_run(
    recipe: Recipe, masked: MaskedRun, *, original: Rows, release: Rows, lineage: Lineage | None, compare: bool = True
) -> JudgedRun:
    """Run every check on a run, wherever the rows lie, and describe its release.

    The manifest says which columns leave unchanged, unless ``compare`` says that both tables are too large for that.
    """
    subject = Subject(
        release=release,
        original=original,
        schema=original.schema,
        models=masked.models,
        model_verdicts=masked.model_verdicts,
        step_verdicts=masked.step_verdicts,
        steps=[step.public() for step in masked.steps],
        order=recipe.order,
        lineage=lineage,
    )
    verdicts, unchanged = run_checks(subject), None
    if compare and lineage is not None:
        before, after, _ = paired_rows(original, release, original.schema, lineage, most=None)
        unchanged = unchanged_columns(before.table, after, lineage)
    manifest = release_manifest(recipe, subject, verdicts, unchanged=unchanged)
    return JudgedRun(subject=subject, verdicts=verdicts, manifest=manifest)


def evaluate_release(
    recipe: Recipe,
    original: Data,
    release: Release,
    lineage: Lineage | None,
    *,
    verdicts: Sequence[Verdict],
    rng: Rng,
    n_targets: int,
    seconds: float,
    progress: Progress,
) -> Evaluation:
    """Attack and measure a release as its recipe says, and attack the original without identifiers for comparison.

    ``seconds`` is the time that the recipe took.
    """
    scenario = AttackScenario(original=original, release=release, lineage=lineage)
    return evaluate(
        with_control(recipe, scenario, rng=rng, seconds=seconds, progress=progress),
        attacks=recipe.attacks,
        measures=recipe.measures or default_measures(),
        limits=recipe.limits,
        verdicts=verdicts,
        rng=rng,
        n_targets=n_targets,
        before=True,
        progress=progress,
    )


def with_control(
    recipe: Recipe, scenario: AttackScenario, *, rng: Rng, seconds: float, progress: Progress = SILENT
) -> AttackScenario:
    """The scenario with a control group by cross-fitting, where the attacks of the recipe need one.

    ``seconds`` is the time that the recipe took; a slow one is not applied again.
    """
    limited = any(limit_of(kind) in recipe.limits.items() for kind in _CONTROLLED)
    if recipe.attacks and not limited and not any(attack.discloses in _CONTROLLED for attack in recipe.attacks):
        return scenario

    def of_fold(kept: Data, own: Rng) -> AttackScenario:
        made = make_release(recipe.uncharged(), kept, rng=own, progress=quiet(progress))
        return AttackScenario(original=kept, release=made.release, lineage=made.masked.lineage)

    return with_folds(scenario, of_fold, rng=rng, progress=progress, seconds=seconds)


def release_manifest(
    recipe: Recipe, subject: Subject, verdicts: Sequence[Verdict], *, unchanged: Sequence[str] | None = None
) -> dict[str, Any]:
    """How the release was made and which models hold. Contains no count of the original.

    ``unchanged`` are the columns that leave as they are; None if that was not compared. Beside a promise of
    differential privacy, nothing that compares with the original is part of it.
    """
    public, steps = recipe.public(), [dict(step) for step in subject.steps]
    if promised({"steps": steps}):
        verdicts, unchanged = [verdict for verdict in verdicts if not verdict.exact], None
    return {
        "sfumato": __version__,
        "recipe": public,
        "columns": {name: column for name, column in public["columns"].items() if name in subject.columns},
        **({} if unchanged is None else {"unchanged": list(unchanged)}),
        "models": public["models"],
        "steps": steps,
        "verdicts": [v.public() for v in verdicts],
        "order": recipe.order,
        "rows": subject.release.rows,
    }
