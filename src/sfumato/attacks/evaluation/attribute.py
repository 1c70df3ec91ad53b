"""The examiner of secrets: a guess is right when it tells the value, or nearly, or a label that covers it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Attack, Guesses
from sfumato.attacks.evaluation.model_selection import for_picking, strongest
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.success_criterion import Criterion
from sfumato.attacks.evaluation.trial import guess, in_release, outcome_of, outside_of, sample, view_of
from sfumato.attacks.scenario import AttackScenario, People, people_of
from sfumato.deadline import split_deadline
from sfumato.errors import BadParameter, NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["best_constant", "examine_attribute", "secret_of"]

Rows = npt.NDArray[np.int64]


def secret_of(attack: Attack, scenario: AttackScenario) -> str:
    """The column whose value is sought."""
    released = scenario.release.table.columns
    wanted = getattr(attack, "secret", None)
    if wanted is not None:
        scenario.original.table.require([wanted])
        if wanted not in released:
            raise NotApplicable(f"The release has no column `{wanted}`, so it cannot give it away directly.")
        return str(wanted)
    sensitive = [name for name in scenario.original.sensitive if name in released]
    if not sensitive:
        raise NotApplicable(
            "The release has no column declared sensitive.", fix="Name the column sought with `secret`."
        )
    if len(sensitive) > 1:
        raise NotApplicable(
            f"The release has {len(sensitive)} sensitive columns: {', '.join(sensitive)}.",
            fix="Name the one sought with `secret`.",
        )
    return sensitive[0]


def examine_attribute(attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, tries: int) -> Outcome:
    secret = secret_of(attack, scenario)
    people = people_of(attack, scenario)
    if secret in people.knows:
        raise BadParameter(f"`{secret}` cannot be both known to the intruder and sought.", column=secret)
    truth = scenario.original.table.column(secret)
    # The people whom made-up rows were modelled on are all in the release, as far as their secrets go.
    place = None if scenario.made_up else scenario.release_row
    usable = truth.is_not_null().to_numpy()[people.rows]
    inside = in_release(place, people)
    inside = inside[usable[inside]]
    if len(inside) == 0:
        raise NotApplicable(f"Nobody sought has a value of `{secret}` that a guess could be compared with.")
    chosen = sample(rng, "targets", inside, tries + for_picking(attack, tries))
    tolerance = float(getattr(attack, "tolerance", 0.0))
    released = scenario.release.table.column(secret)
    published = scenario.release.manifest.get("columns", {}).get(secret, {})
    rule = Criterion(tolerance=tolerance, hierarchy=published.get("hierarchy"))
    rule.refuse_unjudgeable(released, truth)
    outside = outside_of(scenario, people, secret, place)

    def trial(attack: Attack, chosen: Rows, progress: Progress) -> Guesses:
        return guess(attack, view_of(attack, scenario, people, chosen, secret=secret), rng.child("guess"), progress)

    def right(guesses: Guesses, chosen: Rows) -> npt.NDArray[np.bool_]:
        assert guesses.value is not None
        return guesses.made & rule.right(guesses.value, truth.gather(people.rows[chosen]))

    parts = 1 if outside is None else 2
    best, chosen, picked = strongest(attack, chosen, tries, trial, right, split_deadline(progress, parts))
    guesses = trial(best, chosen, split_deadline(progress, parts))
    guesses = replace(guesses, detail={**guesses.detail, **picked})
    rows = people.rows[chosen][: len(guesses.made)]
    hit = right(guesses, chosen[: len(guesses.made)])
    constant = best_constant(rule.telling(released), tolerance)
    blind = rule.right(pl.Series(constant).new_from_index(0, len(rows)), truth.gather(rows))
    control = None
    if outside is not None:
        frame, values = outside
        drawn = sample(rng, "control", np.arange(frame.height), tries)
        strangers = People(frame=frame, rows=np.empty(0, np.int64), knows=people.knows)
        view = view_of(attack, scenario, strangers, drawn, secret=secret)
        # Without time for it, or when nothing of the release fits these few, the reference is the baseline alone,
        # which judges more severely.
        with suppress(NotApplicable):
            others = guess(best, view, rng.child("guess control"), progress)
            assert others.value is not None
            known = others.made & rule.right(others.value, values.gather(drawn[: len(others.made)]))
            control = Arm(hits=int(known.sum()), tries=len(known))
    how = "row map" if scenario.lineage is not None and not scenario.made_up else "original values"
    return outcome_of(
        attack,
        scenario,
        people,
        rows,
        guesses,
        hit,
        Arm(hits=int(blind.sum()), tries=len(rows)),
        control=control,
        secret=secret,
        truth=how,
        planned=len(chosen),
    )


def best_constant(values: pl.Series, tolerance: float) -> pl.Series:
    """The one value that is right most often: what an intruder says who does not link at all."""
    present = values.drop_nulls()
    if len(present) == 0:
        return values.head(1)
    counts = present.alias("value").value_counts(sort=True)
    if tolerance > 0 and values.dtype.is_numeric():
        distinct = counts.sort("value")
        level = distinct["value"].cast(pl.Float64).to_numpy()
        total = np.concatenate([[0], np.cumsum(distinct["count"].to_numpy())])
        ordered = np.sort(level)
        # A guess g is right for every truth t with |g - t| <= tolerance |t|; only the window on the positive side is
        # searched, which is exact for columns of one sign and a good constant otherwise.
        low = np.searchsorted(ordered, np.minimum(level / (1 + tolerance), level * (1 + tolerance)), "left")
        high = np.searchsorted(ordered, np.maximum(level / (1 - min(tolerance, 0.99)), level), "right")
        return distinct["value"][[int(np.argmax(total[high] - total[low]))]].alias(values.name)
    # Ties are broken by the value itself so that the same release gives the same baseline.
    top = counts.filter(pl.col("count") == pl.col("count").max())
    return top.sort("value")["value"].head(1).alias(values.name)
