"""One cell of a study: one candidate under one seed, masked, measured and attacked."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.attacks import Attack, AttackScenario, Discloses, Outcome
from sfumato.attacks.evaluation.loop import Results
from sfumato.dataset import Data
from sfumato.deadline import Deadline
from sfumato.errors import OutOfTime, SfumatoError
from sfumato.evaluation import make_release, run_attacks, run_measures, with_control
from sfumato.evaluation.battery import battery_of
from sfumato.evaluation.limits import limit_of
from sfumato.evaluation.run import attack_to_dict
from sfumato.measures.base import ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Limits, Recipe
from sfumato.rng import Rng


def run_cell(recipe: Recipe, data: Data, *, n_targets: int, seconds: float | None = None) -> dict[str, object]:
    """Make and evaluate the release of a recipe. A refusal is a result of the cell and does not stop the study.

    Measures come first. Attacks run in the order of the battery, cheap ones first, within ``seconds``. If the recipe
    lists no attacks, only those run that the study compares: attacks on identity, and attacks whose kind of disclosure
    has a limit. Once a limit on identity is exceeded with confidence, the remaining attacks are skipped: the candidate
    cannot be recommended, and its risk is then a lower bound.
    """
    begin = time.perf_counter()
    progress = SILENT if seconds is None else Deadline(until=time.monotonic() + seconds)
    try:
        cell = _run(recipe, data, n_targets, progress)
    except SfumatoError as refusal:
        cell = refused_cell(refusal)
    return {**cell, "seconds": round(time.perf_counter() - begin, 3), "allowed": seconds}


def refused_cell(refusal: SfumatoError) -> dict[str, object]:
    """The result of a candidate that was refused: the error instead of attacks and measures."""
    stopped = [str(refusal)] if isinstance(refusal, OutOfTime) else []
    return {
        "refused": refusal.code, "reason": str(refusal), "attacks": [], "measures": [], "verdicts": [],
        "stopped": stopped, "partial": False, "skipped": [], "seconds": 0.0, "allowed": None,
    }  # fmt: skip


def _run(recipe: Recipe, data: Data, n_targets: int, progress: Progress) -> dict[str, object]:
    rng, begin = Rng(recipe.seed), time.perf_counter()
    made = make_release(recipe.uncharged(), data, rng=rng, progress=progress)
    pair = ReleasePair(original=data, release=made.release, lineage=made.masked.lineage)
    measured = run_measures(pair, recipe.measures, rng=rng, progress=SILENT)
    masked = time.perf_counter() - begin
    scenario = AttackScenario(original=data, release=made.release, lineage=made.masked.lineage)
    if any(attack.discloses is not Discloses.IDENTITY for attack in _queue(scenario, recipe).values()):
        scenario = with_control(recipe, scenario, rng=rng, seconds=masked)
    outcomes, skipped = _attack(scenario, recipe, rng=rng, n_targets=n_targets, progress=progress)
    return {
        "rows": made.release.table.rows,
        "attacks": [attack_to_dict(outcome) for outcome in outcomes],
        "measures": [
            {**{key: value for key, value in result.to_dict().items() if key != "detail"}, "about": str(measure.about)}
            | {"better": measure.better}
            for measure, result in zip(recipe.measures, measured, strict=True)
        ],
        "verdicts": [verdict.to_dict() for verdict in made.verdicts],
        "stopped": [str(outcome.facts["attack"]) for outcome in outcomes if isinstance(outcome, OutOfTime)],
        "partial": any(isinstance(outcome, Outcome) and outcome.stopped for outcome in outcomes),
        "skipped": skipped,
    }


def _attack(
    scenario: AttackScenario, recipe: Recipe, *, rng: Rng, n_targets: int, progress: Progress
) -> tuple[Results, list[str]]:
    """The outcomes in the order of the attacks, and the names of the attacks that were skipped."""
    queue = _queue(scenario, recipe)

    def enough(outcomes: Results) -> bool:
        return not recipe.attacks and exceeds_limit([attack_to_dict(item) for item in outcomes], recipe.limits.risk)

    outcomes = run_attacks(
        scenario, queue.values(), rng=rng, streams=[*queue], n_targets=n_targets, progress=progress, enough=enough
    )
    return outcomes, [attack.part_name() for attack in queue.values()][len(outcomes) :]


def _queue(scenario: AttackScenario, recipe: Recipe) -> dict[int, Attack]:
    """The attacks by which ``protect`` would judge the release, by their position, which is their random stream.

    Without a list in the recipe, those are left out that the study does not compare.
    """
    battery = battery_of(scenario, recipe.attacks, recipe.limits)
    return dict(enumerate(battery)) if recipe.attacks else compared_attacks(battery, recipe.limits)


def compared_attacks(attacks: Sequence[Attack], limits: Limits) -> dict[int, Attack]:
    """The attacks on identity, and those whose kind of disclosure has a limit, by their position."""
    kinds = {"risk", *limits.items()}
    return {number: attack for number, attack in enumerate(attacks) if limit_of(attack.discloses) in kinds}


def exceeds_limit(attacks: Sequence[Mapping[str, Any]], limit: float | None) -> bool:
    """Whether an attack on identity exceeds the limit even at the lower end of its interval."""
    return limit is not None and any(
        entry["discloses"] == Discloses.IDENTITY and entry["risk"] is not None and entry["low"] > limit
        for entry in attacks
        if not entry.get("any_columns")  # whether a limit holds for them is the owner's decision
    )
