"""Expected re-identification by counting: prosecutor, and journalist and marketer against a population."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import View
from sfumato.attacks.candidate_rows import match
from sfumato.data.table import Table
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.disclosure._classes import classes, quasi_of, released_classes
from sfumato.params import InputFile
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Prosecutor(Measure):
    """The expected share of people found by an adversary who knows their quasi-identifiers: mean of 1 / class size.

    The prosecutor knows that the person is in the release. With a ``population`` two weaker ones are counted too:
    the journalist, who knows only that the person is in the population (largest risk 1 / smallest population class),
    and the marketer, who wants to find as many as possible (mean of 1 / population class). The mean is over released
    rows, not over classes; suppressed rows are left out and counted.
    """

    about: ClassVar[About] = About.DISCLOSURE
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

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        released = released_classes(pair)
        if released.rows == 0:
            return MeasureResult(measure=self.part_name(), value=None, reason="Every row of the release is suppressed.")
        each = 1 / released.size
        names = quasi_of(pair.original)
        before = classes(
            pair.original.table.frame, names, {name: pair.original.schema.column(name).missing for name in names}
        )
        detail: dict[str, object] = {
            "largest": float(each.max()),
            "limit": self.limit,
            "above": float((each > self.limit).mean()),
            "expected": float(each.sum()),
            "suppressed": released.suppressed,
            "before": float((1 / before.size).mean()) if before.rows else None,
        }
        if self.population is not None:
            from sfumato.data import read

            detail.update(against_population(pair, read(self.population)))
        return MeasureResult(measure=self.part_name(), value=float(each.mean()), detail=detail)


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
