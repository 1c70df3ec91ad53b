"""δ-presence: bounds on the probability that a person of the population is in the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from sfumato.arrays import Floats, Mask
from sfumato.dataset import Data
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.model import ModelRule, Monotonicity, PrivacyModel
from sfumato.masking.population import people_per_class, read_population
from sfumato.params import InputFile
from sfumato.release.class_counts import ConditionResult, ReleaseCounts


class DeltaPresence(PrivacyModel):
    """For every person of the population, the probability of being in the table is between ``low`` and ``high``.

    The probability is the number of rows of an equivalence class over the number of people who match it. With ``low``
    above 0, classes of the population without any row in the table fail too; only coarser levels help there.

    Monotone under generalization (the share of a merged class lies between those of its parts) without suppression
    only.
    """

    examples = ({"low": 0.0, "high": 0.8, "population": "population.csv"},)
    reference: ClassVar[str] = "Nergiz, Atzori and Clifton (2007), doi:10.1145/1247480.1247554"
    promise = "the probability that a person of the population is in the data, given {known}, is at most {worst}"
    protects = frozenset({"membership"})
    stronger = {"low": "more", "high": "less"}

    low: Annotated[float, Field(ge=0, le=1)]
    """Smallest allowed probability."""
    high: Annotated[float, Field(ge=0, le=1)]
    """Largest allowed probability."""
    population: InputFile
    """A table of the whole population, including the people of the table, with the same quasi-identifier columns."""

    @model_validator(mode="after")
    def _ordered(self) -> DeltaPresence:
        if self.low > self.high:
            raise ValueError("low must not be above high")
        return self

    def population_frame(self, data: Data) -> pl.DataFrame:
        return read_population(self.population, data)

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        people_per_class(table, self.part_name())
        return _Share(self.part_name(), self.low, self.high)

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        low, high = parameters["low"], parameters["high"]
        presence = [size / max(people, size) for size, people in zip(counts.sizes, counts.people(), strict=True)]
        return ConditionResult(
            worst=max(presence),
            wanted=high,
            passes=[low - 1e-12 <= share <= high + 1e-12 for share in presence],
            table_holds=not (counts.unmatched_population and low > 0),
        )


class _Share(ModelRule):
    monotonicity = Monotonicity.PASSING

    def __init__(self, name: str, low: float, high: float) -> None:
        self.name, self.low, self.wanted = name, low, high
        self.about_absent = low > 0
        # suppressing all rows of a class takes its share to 0
        self.monotone_under_suppression = low == 0

    def values(self, groups: ClassGroups) -> Floats:
        assert groups.population is not None
        people = np.maximum(groups.population, groups.sizes)
        return groups.sizes / np.maximum(people, 1)

    def passes(self, groups: ClassGroups) -> Mask:
        values = self.values(groups)
        return (values <= self.wanted + 1e-12) & (values >= self.low - 1e-12)

    def worst(self, groups: ClassGroups) -> float:
        values = self.values(groups)
        high, low = float(values.max(initial=0.0)), float(values.min(initial=1.0))
        return low if low < self.low and high <= self.wanted else high
