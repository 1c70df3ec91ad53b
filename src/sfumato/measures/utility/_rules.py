"""Association rules of the original and of the release."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.masking.item_sets import Rule, frequent_item_sets, rules_of
from sfumato.measures.base import About, Measure, ReleasePair


class RuleMeasure(Measure):
    """Base class of measures that mine association rules before and after."""

    about: ClassVar[About] = About.UTILITY
    reference: ClassVar[str] = "Verykios et al. (2004), Association rule hiding, doi:10.1109/TKDE.2004.1269668"

    support: Annotated[float, Field(gt=0, le=1)] = 0.1
    """Share of rows from which a rule is reported."""
    confidence: Annotated[float, Field(gt=0, le=1)] = 0.6
    """Confidence from which a rule is reported."""
    longest: Annotated[int, Field(ge=2, le=4)] = 3
    """The most items of a rule."""

    def rules(self, pair: ReleasePair) -> tuple[frozenset[Rule], frozenset[Rule]]:
        """The rules of the original and of the release."""
        if not pair.common or not pair.masked.height:
            raise NotApplicable("The tables have no column in common, or the release has no row.")
        before, after = (
            rules_of(
                frequent_item_sets(frame, pair.common, support=self.support, longest=self.longest),
                confidence=self.confidence,
            )
            for frame in (pair.original.table.frame, pair.masked)
        )
        return before, after
