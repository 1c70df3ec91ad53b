"""Population uniqueness: a limit on the estimated share of population uniques."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats, Mask
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.masking.models._uniqueness_check import unique_share
from sfumato.masking.population_uniques import Sizes, pitman, zayatz
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts


class PopulationUniqueness(PrivacyModel):
    """The estimated share of the population that is unique in its quasi-identifiers is at most ``limit``.

    Estimated from the class sizes of the table, which is taken as a simple random sample of the given ``fraction`` of
    the population; the estimate is not valid for other sampling designs. If rows may be suppressed, unique rows are
    suppressed first. No monotonicity is known, so a search with this model alone evaluates every combination of levels.
    """

    examples = ({"limit": 0.5, "fraction": 0.1, "estimator": "zayatz"},)
    reference: ClassVar[str] = (
        "Dankar et al. (2012), doi:10.1186/1472-6947-12-66; Hoshino (2001), Journal of Official Statistics 17:499"
    )
    promise = "an estimated share of {worst} of the population is unique in {known}"
    protects = frozenset({"identity"})
    estimate = True
    stronger = {"limit": "less"}

    limit: Annotated[float, Field(ge=0, le=1)]
    """Largest allowed share of the population."""
    fraction: Annotated[float, Field(gt=0, le=1)]
    """Sampling fraction: rows of the table per person of the population."""
    estimator: Literal["dankar", "zayatz", "pitman"] = "dankar"
    """Estimator; ``dankar`` uses Pitman's for fractions up to 0.1 and Zayatz's above."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        return _Unique(self.part_name(), self.limit, self.fraction, self.estimator)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        if counts.sizes != counts.own_rows:
            raise CannotCheck(
                "Empty cells match every value here, so equivalence classes overlap and their sizes are not a sample."
            )
        share = unique_share(counts.own_rows, parameters["fraction"], parameters.get("estimator", "dankar"))
        return ConditionResult(
            worst=share,
            wanted=parameters["limit"],
            passes=[True] * len(counts.own_rows),
            # two optimizers agree on the maximum of a likelihood to about eight digits
            table_holds=share <= parameters["limit"] + 1e-7,
        )


class _Unique(ModelRule):
    monotonicity = Monotonicity.NONE
    about_table = True
    monotone_under_suppression = False

    def __init__(self, name: str, limit: float, fraction: float, estimator: str) -> None:
        self.name, self.wanted, self.fraction = name, limit, fraction
        if estimator == "dankar":
            estimator = "pitman" if fraction <= 0.1 else "zayatz"
        self.estimate = {"pitman": pitman, "zayatz": zayatz}[estimator]

    def values(self, groups: ClassGroups) -> Floats:
        return np.asarray(groups.sizes == 1, dtype=np.float64)

    def passes(self, groups: ClassGroups) -> Mask:
        return np.ones(len(groups), dtype=np.bool_)

    def table_holds(self, groups: ClassGroups) -> bool:
        return self.worst(groups) <= self.wanted

    def worst(self, groups: ClassGroups) -> float:
        try:
            return self.estimate(Sizes.of(groups.sizes[groups.sizes > 0], self.fraction))
        except NotApplicable:
            # a share that cannot be estimated counts as the worst case
            return 1.0
