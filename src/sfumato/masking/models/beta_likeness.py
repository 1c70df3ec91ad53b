"""β-likeness: a limit on the relative gain of each sensitive value's share within a class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

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


class BetaLikeness(PrivacyModel):
    """In every equivalence class, the relative gain of each sensitive value, (q - p) / p, is limited; q is its share in
    the class and p in the table.

    - ``basic``: the gain is at most ``beta``.
    - ``enhanced``: the gain is at most min(beta, -ln p), which also protects frequent values.

    A missing value is no value: rows without one count neither in the class nor in the table, and a class with missing
    values alone fails.

    Only gains count, unlike in t-closeness and δ-disclosure. Monotone under generalization (the share of a merged class
    is at most the larger share of its parts) without suppression only.
    """

    examples = ({"beta": 3.0}, {"beta": 3.0, "kind": "basic"})
    reference: ClassVar[str] = "Cao and Karras (2012), doi:10.14778/2350229.2350255"
    promise = (
        "in no group of records alike in {known} does the share of a sensitive value exceed its share in the whole by "
        "more than {worst} times that share"
    )
    protects = frozenset({"attribute"})
    stronger = {"beta": "less"}

    beta: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """Largest allowed relative gain."""
    kind: Literal["basic", "enhanced"] = "enhanced"
    """``enhanced`` has a tighter limit for frequent values."""
    column: str | None = None
    """The sensitive column. Default: each of the columns that are sensitive when the recipe is run."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        column = sensitive_column(self.part_name(), table, self.column)
        return _Gain(self.part_name(), column, table.track(column), self.beta, self.kind == "enhanced")

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        column, beta = counts.sensitive(parameters), parameters["beta"]
        overall = shares(without_missing(counts.overall[column]))
        enhanced = parameters.get("kind", "enhanced") == "enhanced"
        limits = {value: min(beta, -math.log(share)) if enhanced else beta for value, share in overall.items()}
        worst: list[float] = []
        passes = []
        for histogram in counts.inside[column]:
            here = shares(without_missing(histogram))
            if not here:
                worst.append(math.inf)
                passes.append(False)
                continue
            gain = {value: (here.get(value, 0.0) - share) / share for value, share in overall.items()}
            worst.append(max(0.0, *gain.values()))
            passes.append(all(gain[value] <= limits[value] + 1e-9 for value in overall))
        return ConditionResult(worst=max(worst), wanted=beta, passes=passes)


class _Gain(SensitiveRule):
    monotonicity = Monotonicity.PASSING

    def __init__(self, name: str, column: str, tracked: TrackedColumn, beta: float, enhanced: bool) -> None:
        super().__init__(name, column, tracked.present)
        self.wanted = beta
        totals = tracked.totals * tracked.present
        self.occurs = totals > 0
        self.shares = totals[self.occurs] / totals.sum()
        self.limits = np.minimum(beta, -np.log(self.shares)) if enhanced else np.full(len(self.shares), beta)

    def _gains(self, groups: ClassGroups) -> Floats:
        counts = self.counts(groups)
        shares = counts[:, self.occurs] / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        return np.asarray((shares - self.shares) / self.shares)

    def values(self, groups: ClassGroups) -> Floats:
        return np.where(self.counts(groups).any(axis=1), self._gains(groups).max(axis=1, initial=0.0), np.inf)

    def min_suppressed_rows(self, groups: ClassGroups, passed: Mask) -> Counts:
        # only rows with a value that gained too much lower its share, (m - x) / (n - x)
        largest = np.minimum(self.shares * (1 + self.limits), 1.0)
        shares = self.shares * (1 + self._gains(groups))
        surplus = self.counts(groups).sum(axis=1, keepdims=True) * (shares - largest) / np.maximum(1 - largest, 1e-9)
        return whole_rows(surplus.max(axis=1, initial=0.0), passed, groups.sizes)

    def passes(self, groups: ClassGroups) -> Mask:
        return np.asarray((self._gains(groups) <= self.limits + 1e-9).all(axis=1) & self.counts(groups).any(axis=1))
