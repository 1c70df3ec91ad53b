"""Expected re-identification by counting: prosecutor, and journalist and marketer against a population."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.data.table import Table
from sfumato.errors import NotApplicable
from sfumato.measures.base import MeasureResult, ReleasePair
from sfumato.measures.classes import ClassCounts, ClassMeasure
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Prosecutor(ClassMeasure):
    """The expected share of people found by an adversary who knows their quasi-identifiers: mean of 1 / class size.

    The prosecutor knows that the person is in the release. With a ``population`` two weaker ones are counted too:
    the journalist, who knows only that the person is in the population (largest risk 1 / smallest population class),
    and the marketer, who wants to find as many as possible (mean of 1 / population class). The mean is over released
    rows, not over classes; suppressed rows are left out and counted.
    """

    label: ClassVar[str] = "prosecutor risk"
    meaning: ClassVar[str] = (
        "Average probability of picking the right record for somebody who is known to be in the release."
    )
    default_rank: ClassVar[int | None] = 3
    publishable: ClassVar[bool] = True
    percentage: ClassVar[bool] = True
    main: ClassVar[str] = "limit"
    reference: ClassVar[str] = (
        "El Emam, K. (2013). Guide to the De-Identification of Personal Health Information. doi:10.1201/b14764"
    )

    limit: Annotated[float, Field(gt=0, le=1)] = 0.09
    """A row is counted as at risk when its risk is above this."""
    population: InputFile | None = None
    """File about the whole population, with the quasi-identifiers, of which the release holds a part."""

    def of_classes(self, released: ClassCounts, before: ClassCounts | None) -> MeasureResult:
        if self.population is not None:
            raise NotApplicable("A population is compared with rows in memory only.", fix="Leave `population` out.")
        each = 1 / released.fit
        detail: dict[str, object] = {
            "largest": float(each.max()),
            "limit": self.limit,
            "above": released.share(each > self.limit),
            "expected": released.expected,
            "suppressed": released.suppressed,
            "before": before.expected / before.rows if before is not None and before.rows else None,
        }
        return MeasureResult(measure=self.part_name(), value=released.expected / released.rows, detail=detail)

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        if self.population is None:
            return super().compute(pair, rng, progress)
        from sfumato.data import read

        found = self.model_copy(update={"population": None}).compute(pair, rng, progress)
        if found.value is None:
            return found
        return replace(found, detail={**found.detail, **against_population(pair, read(self.population))})


def against_population(pair: ReleasePair, population: Table) -> dict[str, object]:
    """Journalist and marketer risk of the release against a population table."""
    names = tuple(name for name in pair.original.quasi if name in pair.release.table.columns)
    population.require(names)
    view = View(release=pair.release, targets=population.frame.select(names), knows=names)
    matched = match(view)
    fits = np.zeros(len(matched.starts) - 1)
    for people, candidates in matched.candidates():
        fits[candidates.classes] += len(people)
    own: npt.NDArray[np.int64] = np.diff(matched.starts)
    if (fits < own).any():
        raise NotApplicable(
            f"The population holds fewer people than the release for {int((fits < own).sum())} of its classes.",
            fix="The population must contain everybody in the release, with the same quasi-identifiers.",
        )
    return {
        "journalist": float(1 / fits.min()),
        "marketer": float((own / fits).sum() / own.sum()),
    }
