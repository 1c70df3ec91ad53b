"""δ-disclosure privacy: no sensitive value becomes much more or much less likely by knowing the class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import (
    Counts,
    Floats,
    Mask,
    ModelRule,
    Monotonicity,
    PrivacyModel,
    sensitive_column,
    whole_rows,
)
from sfumato.release.class_counts import ConditionResult, ReleaseCounts, shares


class DeltaDisclosure(PrivacyModel):
    """For every class and every sensitive value, abs(log2(share in the class / share in the table)) is below ``delta``.

    A class in which a value of the table does not occur at all fails, because its absence is disclosed: this is a very
    strict model. The shares of a merged class lie between those of its parts, so it is monotone under generalization;
    with suppression it is not.
    """

    main: ClassVar[str | None] = "delta"
    examples: ClassVar[tuple[dict[str, Any], ...]] = ({"delta": 3.0},)
    reference: ClassVar[str] = "Brickell and Shmatikov (2008), doi:10.1145/1401890.1401904"
    promise = (
        "in no group of records alike in {known} does the binary logarithm of the share of a sensitive value over its "
        "share in the whole exceed {worst}"
    )
    protects = frozenset({"attribute"})
    stronger = {"delta": "less"}

    delta: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Bound of the logarithm to base 2; it must stay below."""
    column: str | None = None
    """The sensitive column; may be left out when there is only one."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        column = sensitive_column(self.part_name(), table, self.column)
        return _LogRatio(self.part_name(), column, table.track(column).totals, self.delta)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        column = counts.sensitive(parameters)
        overall = shares(counts.overall[column])
        values = []
        for histogram in counts.inside[column]:
            here = shares(histogram)
            values.append(
                max(abs(math.log2(here[v] / share)) if v in here else math.inf for v, share in overall.items())
            )
        passes = [value < parameters["delta"] for value in values]
        return ConditionResult(worst=max(values), wanted=parameters["delta"], passes=passes)


class _LogRatio(ModelRule):
    closure = Monotonicity.PASSING

    def __init__(self, name: str, column: str, totals: Any, delta: float) -> None:
        self.name, self.columns, self.wanted = name, (column,), delta
        self.occurs = totals > 0
        self.shares = totals[self.occurs] / totals.sum()

    def values(self, groups: ClassGroups) -> Floats:
        counts = groups.histograms[self.columns[0]][:, self.occurs]
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        ratio = np.full(shares.shape, np.inf)
        np.log2(shares / self.shares, out=ratio, where=shares > 0)
        return np.asarray(np.abs(ratio).max(axis=1, initial=0.0))

    def due(self, groups: ClassGroups, passed: Mask) -> Counts:
        # a value that does not occur in a class occurs in none of its parts, so all of them fail
        return whole_rows(np.where(np.isinf(self.values(groups)), groups.sizes, 1.0), passed, groups.sizes)

    def passes(self, groups: ClassGroups) -> Mask:
        return np.asarray(self.values(groups) < self.wanted)
