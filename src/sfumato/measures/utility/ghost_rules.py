"""Association rules that only a release has."""

from __future__ import annotations

from sfumato.measures.base import MeasureResult, ReleasePair
from sfumato.measures.utility._rules import RuleMeasure
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class GhostRules(RuleMeasure):
    """Ghost rules: the share of the release's association rules that do not come out of the original.

    0: the release has no rule that is not true of the original. Items are the values of texts, truth values and
    integers with few values. The detail counts rules before, after and ghosts.
    """

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        before, after = self.rules(pair)
        ghosts = len(after - before)
        detail = {"rules_before": len(before), "rules_after": len(after), "ghosts": ghosts}
        return MeasureResult(measure=self.part_name(), value=ghosts / max(len(after), 1), detail=detail)
