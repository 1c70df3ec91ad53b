"""Maximum re-identification risk: a limit on the prosecutor risk of every row."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.rationals import rational
from sfumato.release.class_counts import ConditionResult, ReleaseCounts


class MaximumRisk(PrivacyModel):
    """The prosecutor risk of every row, 1 over the size of its equivalence class, is at most ``limit``.

    Equivalent to k-anonymity with k = 1 / limit, rounded up. Monotone under generalization, with and without
    suppression.
    """

    main: ClassVar[str | None] = "limit"
    examples = ({"limit": 0.34},)
    reference: ClassVar[str] = "El Emam and Dankar (2008), doi:10.1197/jamia.M2716"
    promise = "no record is matched by {known} with a probability above {worst}"
    protects = frozenset({"identity"})
    stronger = {"limit": "less"}

    limit: Annotated[float, Field(gt=0, le=1)]
    """Largest allowed probability of re-identifying a person who is known to be in the table."""

    @property
    def fewest_people(self) -> int:
        share = rational(self.limit)
        return -(-share.denominator // share.numerator)

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        return _Prosecutor(self.part_name(), self.limit)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        limit = Fraction(str(parameters["limit"]))
        passes = [Fraction(1, size) <= limit for size in counts.sizes]
        return ConditionResult(worst=1 / min(counts.sizes), wanted=parameters["limit"], passes=passes)


class _Prosecutor(ModelRule):
    monotonicity = Monotonicity.ANY
    sizes_only = True

    def __init__(self, name: str, limit: float) -> None:
        self.name, self.wanted = name, limit
        share = rational(limit)
        self.min_class_size = -(-share.denominator // share.numerator)

    def values(self, groups: ClassGroups) -> Floats:
        return np.asarray(1 / np.maximum(groups.sizes, 1))
