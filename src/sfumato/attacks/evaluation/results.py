"""Evaluation of attacks on hidden results: a guess is correct if the item set came out of the original only."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.evaluation.trial import outcome_of
from sfumato.attacks.scenario import AttackScenario, Targets
from sfumato.errors import NotApplicable
from sfumato.masking.item_sets import frequent_item_sets, vanished_item_sets
from sfumato.progress import Progress
from sfumato.rng import Rng


class ResultAttack(Attack):
    """Base class of attacks that look for hidden results."""

    discloses: ClassVar[Discloses] = Discloses.RESULT

    longest: Annotated[int, Field(ge=2, le=4)] = 3
    """Number of items of the largest item sets that are considered."""

    @abstractmethod
    def thresholds(self, view: View) -> tuple[float, float | None]:
        """The published support and confidence from which a result is reported."""


def evaluate_results(attack: Attack, scenario: AttackScenario, rng: Rng, progress: Progress, n_targets: int) -> Outcome:
    """Count the hidden results among as many guesses as results were hidden, at most ``n_targets``."""
    assert isinstance(attack, ResultAttack)
    original, frame = scenario.original, scenario.release.table.frame
    columns = tuple(name for name in frame.columns if name in original.table.columns)
    view = View(
        release=scenario.release, targets=frame.clear(), knows=attack.knows or columns, transparent=attack.transparent
    )
    support, confidence = attack.thresholds(view)
    truth = vanished_item_sets(
        original.table.frame, frame, columns, support=support, confidence=confidence, longest=attack.longest
    )
    if not truth:
        raise NotApplicable(
            "Everything that comes out of the original also comes out of the release: nothing is hidden."
        )
    count = min(len(truth), n_targets)
    guesses = attack.guess(view, rng.child("guess"), progress)
    named = [frozenset((name, value) for name, _, value in one.conditions) for one in guesses.predicates[:count]]
    hit, made, confident = np.zeros(count), np.zeros(count, dtype=np.bool_), np.zeros(count)
    hit[: len(named)] = [one in truth for one in named]
    made[: len(named)], confident[: len(named)] = True, guesses.confidence[: len(named)]
    # Without the release's counts: item sets of items that are frequent by themselves, named at random.
    single = frequent_item_sets(frame, columns, support=support, longest=1)
    pairs = max(1, len(single) * (len(single) - 1) // 2)
    baseline = Arm(hits=min(float(count), count * len(truth) / max(pairs, len(truth))), trials=count)
    return outcome_of(
        attack,
        Targets(frame=view.targets, rows=np.full(count, -1), knows=view.knows),
        np.full(count, -1, dtype=np.int64),
        Guesses(made=made, confidence=confident, detail=guesses.detail),
        hit,
        baseline,
        truth="results of the original",
        planned=count,
    )
