"""(α, k)-anonymity: at least k rows per class and a bound on the share of each sensitive value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats, Mask
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import (
    Counts,
    ModelRule,
    Monotonicity,
    PrivacyModel,
    SensitiveRule,
    sensitive_column,
    whole_rows,
)
from sfumato.masking.models.l_diversity import secret_values
from sfumato.release.class_counts import ConditionResult, ReleaseCounts, without_missing


class AlphaK(PrivacyModel):
    """Every equivalence class has at least ``k`` rows and no sensitive value with a share above ``alpha``.

    A missing value is no value: the share is one of the rows with a value, and is 1 in a class with missing values
    alone.

    Monotone under generalization without suppression only: a passing class can be merged with a failing one.
    """

    examples = ({"alpha": 0.7, "k": 3},)
    reference: ClassVar[str] = "Wong et al. (2006), doi:10.1145/1150402.1150499"
    promise = "in no group of records alike in {known} does a sensitive value have a share above {worst}"
    protects = frozenset({"identity", "attribute"})
    stronger = {"alpha": "less", "k": "more"}
    size_parameter = "k"

    alpha: Annotated[float, Field(gt=0, le=1)]
    """Largest allowed share of one sensitive value in a class."""
    k: Annotated[int, Field(ge=1)]
    """Minimum number of rows per class."""
    column: str | None = None
    """The sensitive column. Default: each of the columns that are sensitive when the recipe is run."""
    healthy: tuple[str, ...] = ()
    """Values that are not secret and may have any share."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        column = sensitive_column(self.part_name(), table, self.column)
        tracked = table.track(column)
        secret = secret_values(tracked, self.healthy, self.part_name())
        return _Share(self.part_name(), column, tracked.present, self.alpha, self.k, secret)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        not_secret = set(parameters.get("healthy", ()))
        largest = [
            max((count for value, count in histogram.items() if value not in not_secret), default=0)
            / sum(histogram.values())
            if histogram
            else 1.0
            for histogram in map(without_missing, counts.inside[counts.sensitive(parameters)])
        ]
        return ConditionResult(
            worst=max(largest),
            wanted=parameters["alpha"],
            passes=[
                share <= parameters["alpha"] + 1e-9 and size >= parameters["k"]
                for share, size in zip(largest, counts.sizes, strict=True)
            ],
        )


class _Share(SensitiveRule):
    monotonicity = Monotonicity.PASSING

    def __init__(self, name: str, column: str, present: Mask, alpha: float, k: int, secret: Mask | None) -> None:
        super().__init__(name, column, present)
        self.wanted, self.min_class_size, self.secret = alpha, k, secret

    def values(self, groups: ClassGroups) -> Floats:
        counts = self.counts(groups)
        rows = counts.sum(axis=1)
        secrets = counts if self.secret is None else counts[:, self.secret]
        return np.where(rows > 0, secrets.max(axis=1, initial=0) / np.maximum(rows, 1), 1.0)

    def min_suppressed_rows(self, groups: ClassGroups, passed: Mask) -> Counts:
        # only rows with the frequent value lower its share, (m - x) / (n - x)
        surplus = self.counts(groups).sum(axis=1) * (self.values(groups) - self.wanted)
        return whole_rows(surplus / max(1 - self.wanted, 1e-9), passed, groups.sizes)
