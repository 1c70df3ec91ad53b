"""p-sensitive k-anonymity: at least k rows per class and p different values per sensitive column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats, Mask
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts


class PSensitive(PrivacyModel):
    """Every equivalence class has at least ``k`` rows and at least ``p`` different values in every sensitive column.

    Unlike distinct l-diversity it covers all sensitive columns unless ``column`` names one. A
    missing value is no value: rows without one add none. Monotone under generalization, with and without suppression.
    """

    examples = ({"p": 2, "k": 3},)
    reference: ClassVar[str] = "Truta and Vinay (2006), doi:10.1109/ICDEW.2006.116"
    promise = "every group of records alike in {known} holds at least {worst} different values of each sensitive column"
    protects = frozenset({"identity", "attribute"})
    stronger = {"p": "more", "k": "more"}
    size_parameter = "k"

    p: Annotated[int, Field(ge=1)]
    """Minimum number of different sensitive values per class."""
    k: Annotated[int, Field(ge=1)]
    """Minimum number of rows per class."""
    column: str | None = None
    """One sensitive column. Default: all."""

    def for_columns(self, sensitive: Sequence[str]) -> tuple[PrivacyModel, ...]:
        return (self,)  # without a column it is about all of them at once

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        if self.column is not None:
            table.track(self.column)
        columns = (self.column,) if self.column is not None else tuple(table.tracked)
        if not columns:
            raise NotApplicable("p-sensitive needs a sensitive column.", fix="Give a column the role `sensitive`.")
        present = {name: table.track(name).present for name in columns}
        return _Distinct(self.part_name(), present, self.p, max(self.k, self.p))

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        columns = [counts.sensitive(parameters)] if parameters.get("column") else list(counts.inside)
        if not columns:
            raise CannotCheck("It needs a sensitive column.")
        p, rows = parameters["p"], max(parameters["k"], parameters["p"])
        distinct = [
            min(sum(value is not None for value in counts.inside[name][i]) for name in columns)
            for i in range(len(counts.sizes))
        ]
        return ConditionResult(
            worst=min(distinct),
            wanted=p,
            passes=[values >= p and size >= rows for values, size in zip(distinct, counts.sizes, strict=True)],
        )


class _Distinct(ModelRule):
    monotonicity = Monotonicity.ANY
    smaller_is_better = False

    def __init__(self, name: str, present: Mapping[str, Mask], p: int, least: int) -> None:
        self.name, self.columns, self.wanted, self.min_class_size = name, tuple(present), float(p), least
        self.present = present

    def values(self, groups: ClassGroups) -> Floats:
        distinct = [(groups.histograms[name][:, self.present[name]] > 0).sum(axis=1) for name in self.columns]
        return np.asarray(np.min(distinct, axis=0), dtype=np.float64)
