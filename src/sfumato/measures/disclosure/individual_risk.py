"""Individual risk in a survey with sampling weights."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._weighted import weighted_risk
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class IndividualRisk(Measure):
    """The mean probability that a row is linked to its person in the population, from the sampling weights.

    Given the rows that share its quasi-identifiers and their weights, the size F of a row's class in the population is
    negative binomial, and the risk is the expected 1 / F. The sum over rows (``expected``) is the number of people a
    survey release is expected to disclose to an adversary who links it with the whole population.
    """

    about: ClassVar[About] = About.DISCLOSURE
    examples = ({"fraction": 0.1},)
    reference: ClassVar[str] = (
        "Franconi, L., Polettini, S. (2004). Individual risk estimation in mu-Argus: a review. Privacy in Statistical "
        "Databases, LNCS 3050. doi:10.1007/978-3-540-25955-8_20"
    )

    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Sampling fraction, for a sample without a weight column."""
    formula: Literal["exact", "sdcmicro"] = "exact"
    """Posterior mean for all class sizes, or the approximation that sdcMicro uses for classes of three and more."""
    limit: Annotated[float, Field(gt=0, le=1)] = 0.09
    """A row is counted as at risk when its risk is above this."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        found = weighted_risk(pair, self.fraction, self.formula)
        return MeasureResult(
            measure=self.part_name(),
            value=float(found.risk.mean()),
            detail={
                "expected": float(found.risk.sum()),
                "largest": float(found.risk.max()),
                "limit": self.limit,
                "above": float((found.risk > self.limit).mean()),
                "below_2": int((found.fits < 2).sum()),
                "below_3": int((found.fits < 3).sum()),
                "below_5": int((found.fits < 5).sum()),
            },
        )
