"""k-anonymity: every equivalence class has at least k rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.release.class_counts import ConditionResult, ReleaseCounts


class KAnonymity(PrivacyModel):
    """Every combination of quasi-identifier values that occurs is shared by at least ``k`` rows.

    An attacker who knows the quasi-identifiers of a person in the table finds at least ``k`` matching rows. Attribute
    disclosure is not limited: if all matching rows share a diagnosis, the diagnosis is disclosed.

    Monotone under generalization, with and without suppression.
    """

    main: ClassVar[str | None] = "k"
    examples = ({"k": 2},)
    reference: ClassVar[str] = "Samarati (2001), doi:10.1109/69.971193; Sweeney (2002), doi:10.1142/S0218488502001648"
    promise = "every released combination of {known} belongs to at least {worst} records"
    protects = frozenset({"identity"})
    stronger = {"k": "more"}
    size_parameter = "k"

    k: Annotated[int, Field(ge=2)]
    """Minimum number of rows per equivalence class."""

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        return _AtLeast(self.part_name(), self.k)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        k = parameters["k"]
        return ConditionResult(worst=min(counts.sizes), wanted=k, passes=[size >= k for size in counts.sizes])


class _AtLeast(ModelRule):
    monotonicity = Monotonicity.ANY
    sizes_only = True
    smaller_is_better = False

    def __init__(self, name: str, k: int) -> None:
        self.name, self.min_class_size, self.wanted = name, k, float(k)

    def values(self, groups: ClassGroups) -> Floats:
        return groups.sizes.astype(np.float64)
