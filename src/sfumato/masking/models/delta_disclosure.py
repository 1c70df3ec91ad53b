"""δ-disclosure privacy: a limit on the log-ratio of each sensitive value's share in a class and in the table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats, Mask
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses, TrackedColumn
from sfumato.masking.model import (
    Counts,
    ModelRule,
    Monotonicity,
    PrivacyModel,
    SensitiveRule,
    sensitive_column,
    whole_rows,
)
from sfumato.release.class_counts import ConditionResult, ReleaseCounts, shares, without_missing


class DeltaDisclosure(PrivacyModel):
    """In every equivalence class, abs(log2(share in the class / share in the table)) is below ``delta`` for all values.

    A class that lacks a value of the table fails, because the absence is disclosed. The model is therefore very strict.
    A missing value is no value: rows without one count neither in the class nor in the table, and a class with missing
    values alone fails.

    Monotone under generalization (the shares of a merged class lie between those of its parts) without suppression
    only.
    """

    main: ClassVar[str | None] = "delta"
    examples = ({"delta": 3.0},)
    reference: ClassVar[str] = "Brickell and Shmatikov (2008), doi:10.1145/1401890.1401904"
    promise = (
        "in no group of records alike in {known} does the binary logarithm of the share of a sensitive value over its "
        "share in the whole exceed {worst}"
    )
    protects = frozenset({"attribute"})
    stronger = {"delta": "less"}

    delta: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Upper bound of the absolute base-2 logarithm (exclusive)."""
    column: str | None = None
    """The sensitive column. Default: each of the columns that are sensitive when the recipe is run."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        column = sensitive_column(self.part_name(), table, self.column)
        return _LogRatio(self.part_name(), column, table.track(column), self.delta)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        column = counts.sensitive(parameters)
        overall = shares(without_missing(counts.overall[column]))
        values = []
        for histogram in counts.inside[column]:
            here = shares(without_missing(histogram))
            ratios = (abs(math.log2(here[v] / share)) if v in here else math.inf for v, share in overall.items())
            values.append(max(ratios, default=math.inf))
        passes = [value < parameters["delta"] for value in values]
        return ConditionResult(worst=max(values), wanted=parameters["delta"], passes=passes)


class _LogRatio(SensitiveRule):
    monotonicity = Monotonicity.PASSING

    def __init__(self, name: str, column: str, tracked: TrackedColumn, delta: float) -> None:
        super().__init__(name, column, tracked.present)
        self.wanted = delta
        totals = tracked.totals * tracked.present
        self.occurs = totals > 0
        self.shares = totals[self.occurs] / totals.sum()

    def values(self, groups: ClassGroups) -> Floats:
        counts = self.counts(groups)[:, self.occurs]
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        ratio = np.full(shares.shape, np.inf)
        np.log2(shares / self.shares, out=ratio, where=shares > 0)
        return np.where(counts.any(axis=1), np.abs(ratio).max(axis=1, initial=0.0), np.inf)

    def min_suppressed_rows(self, groups: ClassGroups, passed: Mask) -> Counts:
        # a value that does not occur in a class occurs in none of its parts, so all of them fail
        return whole_rows(np.where(np.isinf(self.values(groups)), groups.sizes, 1.0), passed, groups.sizes)

    def passes(self, groups: ClassGroups) -> Mask:
        return np.asarray(self.values(groups) < self.wanted)
