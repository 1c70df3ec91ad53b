"""Evaluation of attribute inference: a guess is correct if it is the target's sensitive value.

For numbers it may be off by the tolerance; a coarse label is correct if it covers the true value.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Guesses
from sfumato.attacks.evaluation.model_selection import selection_targets, strongest
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.success_criterion import Criterion
from sfumato.attacks.evaluation.trial import (
    controlled_scenarios,
    in_release,
    non_members,
    outcome_of,
    run_attack,
    sample,
    view_of,
    with_everything,
)
from sfumato.attacks.scenario import AttackScenario, Targets, targets_of
from sfumato.deadline import split_deadline
from sfumato.errors import BadParameter, NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng

Rows = npt.NDArray[np.int64]


def secret_of(attack: Attack, scenario: AttackScenario) -> str:
    """The column whose value is to be inferred."""
    released = scenario.release.table.columns
    declared = getattr(attack, "secret", None)
    if declared is not None:
        scenario.original.table.require([declared])
        if declared not in released:
            raise NotApplicable(f"Column `{declared}` is not in the release, so its values cannot be inferred from it.")
        return str(declared)
    sensitive = [name for name in scenario.original.sensitive if name in released]
    if not sensitive:
        raise NotApplicable(
            "The release has no column declared sensitive.", fix="Name the sensitive column to infer with `secret`."
        )
    if len(sensitive) > 1:
        raise NotApplicable(
            f"The release has {len(sensitive)} sensitive columns: {', '.join(sensitive)}.",
            fix="Name the sensitive column to infer with `secret`.",
        )
    return sensitive[0]


def evaluate_attribute(
    attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int
) -> Outcome:
    """Draw targets with a known true value and compare the guessed values with it."""
    secret = secret_of(attack, scenario)
    targets = targets_of(attack, scenario)
    formula: tuple[str, ...] = ()
    if attack.transparent:
        scenario, formula = scenario.with_formula(secret)
    if secret in targets.knows:
        raise BadParameter(f"`{secret}` cannot be both known to the attacker and inferred.", column=secret)
    truth = scenario.original.table.column(secret)
    # The people a synthetic release was modelled on all count as members.
    release_row = None if scenario.synthetic else scenario.release_row
    usable = truth.is_not_null().to_numpy()[targets.rows]
    released_people = in_release(release_row, targets)
    inside = released_people[usable[released_people]]
    if len(inside) == 0:
        raise NotApplicable(f"No target has a value of `{secret}` to compare guesses with.")
    chosen = sample(rng, "targets", inside, n_targets + selection_targets(attack, n_targets))
    tolerance = float(getattr(attack, "tolerance", 0.0))
    released = scenario.release.table.column(secret)
    published = scenario.release.manifest.get("columns", {}).get(secret, {})
    criterion = Criterion(tolerance=tolerance, hierarchy=published.get("hierarchy"))
    criterion.refuse_incomparable(released, truth)
    controlled = controlled_scenarios(scenario, targets)

    def trial(attack: Attack, chosen: Rows, progress: Progress) -> Guesses:
        view = view_of(attack, scenario, targets, chosen, secret=secret)
        if attack.uses_everything:
            view = with_everything(view, scenario, targets, released_people, chosen)
        return run_attack(attack, view, rng.child("guess"), progress)

    def correct(guesses: Guesses, chosen: Rows) -> npt.NDArray[np.bool_]:
        assert guesses.value is not None
        return guesses.made & criterion.correct(guesses.value, truth.gather(targets.rows[chosen]))

    parts = 2 if controlled else 1
    best, chosen, selection = strongest(attack, chosen, n_targets, trial, correct, split_deadline(progress, parts))
    guesses = trial(best, chosen, split_deadline(progress, parts))
    told = {"computed from": list(formula)} if formula else {}
    guesses = replace(guesses, detail={**guesses.detail, **selection, **told})
    rows = targets.rows[chosen][: len(guesses.made)]
    hit = correct(guesses, chosen[: len(guesses.made)])
    constant = best_constant(criterion.informative(released), tolerance)
    constant_hit = criterion.correct(pl.Series(constant).new_from_index(0, len(rows)), truth.gather(rows))
    control = _control_arm(best, controlled, targets, secret, criterion, rng, progress, n_targets)
    if control is None and scenario.why_no_control:
        guesses = replace(guesses, detail={**guesses.detail, "control": scenario.why_no_control})
    return outcome_of(
        attack,
        targets,
        rows,
        guesses,
        hit,
        Arm(hits=int(constant_hit.sum()), trials=len(rows)),
        control=control,
        secret=secret,
        truth="row map" if scenario.lineage is not None and not scenario.synthetic else "original values",
        planned=len(chosen),
    )


def _control_arm(
    attack: Attack,
    controlled: Sequence[AttackScenario],
    targets: Targets,
    secret: str,
    criterion: Criterion,
    rng: Rng,
    progress: Progress,
    n_targets: int,
) -> Arm | None:
    """The same attack on people who are not in the release; None if it has no result for any of them.

    The reference is then the baseline alone, which is the more conservative one.
    """
    hits = trials = 0
    for number, scenario in enumerate(controlled):
        assert scenario.control is not None
        strangers, values = non_members(scenario.control, targets, secret)
        stream = rng.child("control", number)
        drawn = sample(stream, "targets", np.arange(len(values)), max(1, n_targets // len(controlled)))
        # Out of time, or no row matches these few people.
        with suppress(NotApplicable):
            view = view_of(attack, scenario, strangers, drawn, secret=secret)
            part = split_deadline(progress, len(controlled) - number)
            guesses = run_attack(attack, view, stream.child("guess"), part)
            assert guesses.value is not None
            truth = values.gather(drawn[: len(guesses.made)])
            hits += int((guesses.made & criterion.correct(guesses.value, truth)).sum())
            trials += len(guesses.made)
    return Arm(hits=hits, trials=trials) if trials else None


def best_constant(values: pl.Series, tolerance: float) -> pl.Series:
    """The single value that is correct most often: the guess of an adversary who does not link at all."""
    present = values.drop_nulls()
    if len(present) == 0:
        return values.head(1)
    counts = present.alias("value").value_counts(sort=True)
    if tolerance > 0 and values.dtype.is_numeric():
        distinct = counts.sort("value")
        level = distinct["value"].cast(pl.Float64).to_numpy()
        total = np.concatenate([[0], np.cumsum(distinct["count"].to_numpy())])
        ordered = np.sort(level)
        # A guess g is correct for every true value t with |g - t| <= tolerance |t|. Only the window on the positive
        # side is searched, which is exact for columns of one sign and a good constant otherwise.
        low = np.searchsorted(ordered, np.minimum(level / (1 + tolerance), level * (1 + tolerance)), "left")
        high = np.searchsorted(ordered, np.maximum(level / (1 - min(tolerance, 0.99)), level), "right")
        return distinct["value"][[int(np.argmax(total[high] - total[low]))]].alias(values.name)
    # Ties are broken by the value itself, so that the same release gives the same baseline.
    top = counts.filter(pl.col("count") == pl.col("count").max())
    return top.sort("value")["value"].head(1).alias(values.name)
