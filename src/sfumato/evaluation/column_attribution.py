"""Which column an attack owes its success to: the attack is repeated with each known column left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sfumato.attacks import Attack, AttackScenario, Discloses, Outcome, evaluate_attack, risk
from sfumato.deadline import Deadline, check_deadline, quiet
from sfumato.errors import NotApplicable, SfumatoError
from sfumato.evaluation.limits import LimitResult, judged_risk, limit_of
from sfumato.evaluation.ways_out import undeclared
from sfumato.progress import Progress
from sfumato.rng import Rng

_MAX_ROWS = 200_000
_MAX_COLUMNS = 12
_TARGETS = 500


def column_attribution(
    scenario: AttackScenario,
    attacks: Sequence[Attack],
    outcomes: Sequence[Outcome | NotApplicable],
    limits: Sequence[LimitResult],
    *,
    rng: Rng,
    progress: Progress,
) -> list[Outcome | NotApplicable]:
    """For each exceeded limit, the strongest inexpensive attack also reports its risk with each known column removed.

    Done for releases of up to 200,000 rows, attacks that know up to 12 columns, and 500 targets, while time is left.
    """
    results = list(outcomes)
    for number, item in enumerate(results):
        wanted = next((one.wanted for one in limits if one.limit == "risk" and one.met is False), None)
        if isinstance(item, Outcome) and item.any_columns and wanted is not None and judged_risk(item) > wanted:
            own = rng.child("enough", number)
            enough = _enough(attacks[number], item, wanted, scenario, own, progress)
            results[number] = replace(item, detail={**item.detail, **({"enough": enough} if enough else {})})
    if scenario.release.table.rows > _MAX_ROWS or (isinstance(progress, Deadline) and progress.left <= 0):
        return results
    for limit in limits:
        candidates = [
            (judged_risk(item), number)
            for number, item in enumerate(results)
            if isinstance(item, Outcome) and attacks[number].cheap and limit_of(item.discloses) == limit.limit
        ]
        value, number = max(candidates, default=(0.0, -1))
        worst = results[number] if value > limit.wanted else None
        if isinstance(worst, Outcome) and 1 < len(worst.knows) <= _MAX_COLUMNS:
            own = rng.child("without", number)
            results[number] = replace(worst, without=_without(attacks[number], worst.knows, scenario, own, progress))
    return results


def _enough(
    attack: Attack, outcome: Outcome, wanted: float, scenario: AttackScenario, rng: Rng, progress: Progress
) -> list[str]:
    """The undeclared columns without which the attack stays within the limit: those that it needs most come first."""
    others = undeclared(outcome.knows, scenario.release.manifest)
    if not outcome.computed or attack.setting != "all" or not 1 < len(others) <= _MAX_COLUMNS:
        return []

    def left(removed: list[str]) -> float:
        check_deadline(progress)
        fewer = attack.model_copy(update={"knows": tuple(name for name in outcome.knows if name not in removed)})
        return judged_risk(evaluate_attack(fewer, scenario, rng=rng, n_targets=_TARGETS, progress=quiet(progress)))

    try:
        order = sorted(others, key=lambda name: left([name]))
        return next(
            (order[:count] for count in range(1, len(order)) if left(order[:count]) <= wanted),
            [],
        )
    except SfumatoError:
        return []  # all undeclared columns are named then


def _without(
    attack: Attack, knows: tuple[str, ...], scenario: AttackScenario, rng: Rng, progress: Progress
) -> dict[str, dict[str, float]]:
    remaining: dict[str, dict[str, float]] = {}
    if attack.discloses is Discloses.ATTRIBUTE:
        scenario = replace(scenario, folds=())  # only the risk itself is reported, not its control
    listener = progress.listener if isinstance(progress, Deadline) else progress
    with listener.task("attributing risk to columns", len(knows)) as tick:
        for column in knows:
            fewer = attack.model_copy(update={"knows": tuple(name for name in knows if name != column)})
            try:
                outcome = evaluate_attack(
                    fewer, scenario, rng=rng.child(column), n_targets=_TARGETS, progress=quiet(progress)
                )
            except SfumatoError:
                continue  # the attack does not apply without this column
            finally:
                tick(1)
            left = risk(outcome)
            remaining[column] = {"risk": left.value, "low": left.low, "high": left.high}
    return remaining
