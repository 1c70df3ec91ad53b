"""k-map: every combination of quasi-identifiers matches at least k people of the population."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.dataset import Data
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.masking.population import people_per_class, read_population
from sfumato.params import InputFile
from sfumato.release.class_counts import ConditionResult, ReleaseCounts


class KMap(PrivacyModel):
    """Every combination of quasi-identifier values in the table matches at least ``k`` people of the population.

    It protects against an attacker who does not know whether the person is in the table, and is weaker than k-anonymity
    against one who does. The population table should contain everyone the table could be about. Only its people are
    counted; people of the table who are absent from it do not count.

    Monotone under generalization, with and without suppression.
    """

    examples = ({"k": 2, "population": "population.csv"},)
    reference: ClassVar[str] = "El Emam and Dankar (2008), doi:10.1197/jamia.M2716"
    promise = "every released combination of {known} matches at least {worst} people of the population"
    protects = frozenset({"identity"})
    stronger = {"k": "more"}

    k: Annotated[int, Field(ge=1)]
    """Minimum number of matching people."""
    population: InputFile
    """A table of the population with the same quasi-identifier columns."""

    def population_frame(self, data: Data) -> pl.DataFrame:
        return read_population(self.population, data)

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        people_per_class(table, self.part_name())
        return _People(self.part_name(), self.k)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        k, people = parameters["k"], counts.people()
        return ConditionResult(worst=min(people), wanted=k, passes=[count >= k for count in people])


class _People(ModelRule):
    monotonicity = Monotonicity.ANY
    smaller_is_better = False

    def __init__(self, name: str, k: int) -> None:
        self.name, self.wanted = name, float(k)

    def values(self, groups: ClassGroups) -> Floats:
        assert groups.population is not None
        return groups.population.astype(np.float64)
