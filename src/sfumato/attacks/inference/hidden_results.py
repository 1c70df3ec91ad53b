"""Search for results that a release was changed to hide."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from sfumato.attacks.base import Guesses, Predicate, Stage, View
from sfumato.attacks.evaluation.results import ResultAttack
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.masking.base import Step
from sfumato.masking.item_sets import ItemSet, frequent_item_sets, least_count, vanished_item_sets
from sfumato.masking.methods.hide_results import HideResults
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_NEAR = 0.5
"""Candidates have at least this share of the support from which a result is reported."""


class HiddenResults(ResultAttack):
    """An attacker who reads that results were hidden looks for item sets and rules that just miss the thresholds.

    Support and confidence are published, and whoever changes as little as possible leaves the hidden results right
    below them. The attacker mines the release at half the support, and names the item sets that miss a threshold by the
    fewest rows; they are told how many results were hidden. With ``earlier``, they have another version of the data and
    name what came out of it and does not come out of the release: hiding does not survive that. The truth is what comes
    out of the original and not out of the release. The baseline names item sets of the release at random.
    """

    stage: ClassVar[Stage] = Stage.METHOD
    weak_masking: ClassVar[Mapping[str, Mapping[str, Any]] | None] = {
        "hide-results": {"results": [{"together": {"sex": "F", "diagnosis": "none"}}], "support": 0.2, "longest": 2}
    }
    examples = ({"longest": 2},)
    reference: ClassVar[str] = "Verykios et al. (2004), Association rule hiding, doi:10.1109/TKDE.2004.1269668"

    earlier: InputFile | None = None
    """Another version of the data that the attacker has, such as last year's file."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method is HideResults

    @classmethod
    def remedy(cls, detail: Mapping[str, object]) -> str | None:
        return (
            "Hiding keeps a result out of the named algorithm only. Generalize or remove a column of the result, and "
            "publish no other version of the data."
        )

    def thresholds(self, view: View) -> tuple[float, float | None]:
        """The published thresholds."""
        published = [step for step in view.steps if "support" in step and step.get("step") == HideResults.part_name()]
        if not published:
            raise NotApplicable("The release does not say that association rules or item sets were hidden.")
        return float(published[-1]["support"]), published[-1].get("confidence")

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        check_deadline(progress)
        support, confidence = self.thresholds(view)
        shortfall = self._shortfalls(view, support, confidence)
        if self.earlier is not None:
            from sfumato.data import read

            before, after = read(self.earlier).frame, view.release.table.frame
            gone = vanished_item_sets(
                before, after, view.knows, support=support, confidence=confidence, longest=self.longest
            )
            shortfall = {**{one: 1e9 + miss for one, miss in shortfall.items()}, **dict.fromkeys(gone, 0.0)}
        check_deadline(progress)
        ranked = sorted(shortfall, key=lambda one: (shortfall[one], len(one), str(sorted(one, key=str))))
        predicates = tuple(
            Predicate(conditions=tuple((name, "=", value) for name, value in sorted(one, key=str))) for one in ranked
        )
        belief = np.minimum(np.array([1 / (1 + shortfall[one]) for one in ranked]), 0.99)
        return Guesses(predicates=predicates, made=np.ones(len(ranked), dtype=np.bool_), confidence=belief)

    def _shortfalls(self, view: View, support: float, confidence: float | None) -> dict[ItemSet, float]:
        """How many rows each candidate misses a threshold by."""
        frame = view.release.table.frame
        least = least_count(support, frame.height)
        counts = frequent_item_sets(frame, view.knows, support=_NEAR * support, longest=self.longest)
        missed: dict[ItemSet, float] = {}
        for items, count in counts.items():
            if len(items) < 2:
                continue
            if count < least:
                missed[items] = float(least - count)
            elif confidence is not None:
                parts = (frozenset(part) for size in range(1, len(items)) for part in combinations(items, size))
                misses = [need - count for part in parts if (need := np.ceil(confidence * counts[part])) > count]
                if misses:
                    missed[items] = float(min(misses))
        return missed
