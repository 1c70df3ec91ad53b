"""Association rules that a release lost."""

from __future__ import annotations

from sfumato.measures.base import MeasureResult, ReleasePair
from sfumato.measures.utility._rules import RuleMeasure
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class LostRules(RuleMeasure):
    """Lost rules: the share of the original's association rules that do not come out of the release.

    0: all rules are still there. Rules that were hidden on purpose count as lost. Items are the values of texts, truth
    values and integers with few values. The detail counts rules before, after and lost.
    """

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        before, after = self.rules(pair)
        lost = len(before - after)
        detail = {"rules_before": len(before), "rules_after": len(after), "lost": lost}
        return MeasureResult(measure=self.part_name(), value=lost / max(len(before), 1), detail=detail)
