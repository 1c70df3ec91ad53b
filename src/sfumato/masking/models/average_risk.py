"""Average risk: rows are found with at most so high a probability on average."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import Floats, Mask, ModelRule, Monotonicity, PrivacyModel
from sfumato.rationals import rational
from sfumato.release.class_counts import ConditionResult, ReleaseCounts


class AverageRisk(PrivacyModel):
    """The prosecutor risk, 1 over the size of a row's class, is at most ``limit`` on average over rows.

    That average is the number of classes over the number of rows. Single rows may be unique: combine it with
    k-anonymity or a maximum risk. Where rows may be suppressed, the smallest classes go first. Coarser tables have
    fewer classes, so it is monotone under generalization; with suppression it is not.
    """

    main: ClassVar[str | None] = "limit"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"limit": 0.5},)
    reference: ClassVar[str] = "El Emam (2013), doi:10.1201/b14764"
    promise = "records are matched by {known} with a probability of at most {worst} on average"
    protects = frozenset({"identity"})
    stronger = {"limit": "less"}

    limit: Annotated[float, Field(gt=0, le=1)]
    """Largest allowed mean probability."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        return _Mean(self.part_name(), self.limit)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        mean = Fraction(len(counts.own_rows), sum(counts.own_rows))
        return ConditionResult(
            worst=float(mean),
            wanted=parameters["limit"],
            passes=[True] * len(counts.own_rows),
            table_holds=mean <= Fraction(str(parameters["limit"])),
        )


class _Mean(ModelRule):
    closure = Monotonicity.PASSING
    about_table = True
    shrinks = False

    def __init__(self, name: str, limit: float) -> None:
        self.name, self.wanted, self._share = name, limit, rational(limit)

    def values(self, groups: ClassGroups) -> Floats:
        return np.asarray(1 / np.maximum(groups.sizes, 1))

    def passes(self, groups: ClassGroups) -> Mask:
        return np.ones(len(groups), dtype=np.bool_)

    def table_holds(self, groups: ClassGroups) -> bool:
        classes, rows = int((groups.sizes > 0).sum()), int(groups.sizes.sum())
        return classes * self._share.denominator <= self._share.numerator * rows

    def worst(self, groups: ClassGroups) -> float:
        return float((groups.sizes > 0).sum() / max(int(groups.sizes.sum()), 1))
