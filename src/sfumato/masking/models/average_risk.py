"""Average re-identification risk: a limit on the mean prosecutor risk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats, Mask
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.rationals import rational
from sfumato.release.class_counts import ConditionResult, ReleaseCounts


class AverageRisk(PrivacyModel):
    """The mean prosecutor risk over all rows, 1 over the size of a row's equivalence class, is at most ``limit``.

    The mean equals the number of classes over the number of rows. Where empty cells match every value, the size of a
    row's class is the number of rows that match it. Single rows may still be unique; combine it with
    k-anonymity or maximum-risk. If rows may be suppressed, the smallest classes are suppressed first. Monotone under
    generalization (coarser tables have fewer classes) without suppression only.
    """

    main: ClassVar[str | None] = "limit"
    examples = ({"limit": 0.5},)
    reference: ClassVar[str] = "El Emam (2013), doi:10.1201/b14764"
    promise = "records are matched by {known} with a probability of at most {worst} on average"
    protects = frozenset({"identity"})
    stronger = {"limit": "less"}

    limit: Annotated[float, Field(gt=0, le=1)]
    """Largest allowed mean risk."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        return _Mean(self.part_name(), self.limit)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        alike = Counter(zip(counts.own_rows, counts.sizes, strict=True))
        mean = sum(times * Fraction(own, size) for (own, size), times in alike.items()) / sum(counts.own_rows)
        return ConditionResult(
            worst=float(mean),
            wanted=parameters["limit"],
            passes=[True] * len(counts.own_rows),
            table_holds=mean <= Fraction(str(parameters["limit"])),
        )


class _Mean(ModelRule):
    monotonicity = Monotonicity.PASSING
    about_table = True
    monotone_under_suppression = False

    def __init__(self, name: str, limit: float) -> None:
        self.name, self.wanted, self._share = name, limit, rational(limit)

    def values(self, groups: ClassGroups) -> Floats:
        return np.asarray(1 / np.maximum(groups.sizes, 1))

    def passes(self, groups: ClassGroups) -> Mask:
        return np.ones(len(groups), dtype=np.bool_)

    def table_holds(self, groups: ClassGroups) -> bool:
        return self._mean(groups) <= self._share

    def worst(self, groups: ClassGroups) -> float:
        return float(self._mean(groups))

    def _mean(self, groups: ClassGroups) -> Fraction:
        rows = groups.sizes if groups.own_rows is None else groups.own_rows
        total = max(int(rows.sum()), 1)
        if groups.own_rows is None:
            return Fraction(int((groups.sizes > 0).sum()), total)
        # classes overlap: a row matches more rows than show its values
        sizes, position = np.unique(groups.sizes, return_inverse=True)
        of_size = np.bincount(position, weights=rows).astype(np.int64)
        shares = (Fraction(n, size) for n, size in zip(of_size.tolist(), sizes.tolist(), strict=True) if n)
        return sum(shares, Fraction(0)) / total
