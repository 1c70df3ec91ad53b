"""Population uniqueness, estimated from a sample."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.masking.population_uniques import Sizes, pitman, snb, zayatz
from sfumato.measures.base import MeasureResult
from sfumato.measures.classes import ClassCounts, ClassMeasure


class PopulationUniquenessMeasure(ClassMeasure):
    """The estimated share of the population whose quasi-identifiers nobody else has, seen from the released sample.

    Three estimators, all in ``detail``: Zayatz (the sample's class sizes stand for the population's), Pitman (the
    two-parameter sampling formula, by maximum likelihood) and the slide negative binomial. "dankar" chooses between
    them as the rule of Dankar et al. does: Pitman up to a sampling fraction of a tenth, else the smaller of Zayatz and
    slide negative binomial. They are estimates from a model: with a population file, journalist risk counts instead.
    """

    main: ClassVar[str] = "fraction"
    examples = ({"fraction": 0.1},)
    reference: ClassVar[str] = (
        "Dankar, F. K. et al. (2012). Estimating the re-identification risk of clinical data sets. BMC Medical "
        "Informatics and Decision Making 12:66. doi:10.1186/1472-6947-12-66"
    )

    fraction: Annotated[float, Field(gt=0, le=1)]
    """Sampling fraction: rows of the release per person of the population."""
    estimator: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"
    """Which estimate is the value."""

    def of_classes(self, released: ClassCounts, before: ClassCounts | None) -> MeasureResult:
        sample = Sizes.of(released.own, self.fraction)
        detail: dict[str, Any] = {"sample_unique": sample.unique / sample.rows, "fraction": self.fraction}
        for name, estimate in (("zayatz", zayatz), ("pitman", pitman), ("snb", snb)):
            try:
                detail[name] = estimate(sample)
            except NotApplicable as refusal:
                detail[name] = None
                detail[f"{name}_reason"] = str(refusal)
        chosen = self.estimator if self.estimator != "dankar" else dankar(detail, self.fraction)
        detail["estimator"] = chosen
        value = detail[chosen]
        if value is None:
            reason = str(detail[f"{chosen}_reason"])
            return MeasureResult(measure=self.part_name(), value=None, detail=detail, reason=reason)
        return MeasureResult(measure=self.part_name(), value=float(value), detail=detail)


def dankar(estimates: dict[str, Any], fraction: float) -> str:
    """The estimator that Dankar's rule takes."""
    if fraction <= 0.1 and estimates["pitman"] is not None:
        return "pitman"
    if estimates["snb"] is None:
        return "zayatz"
    return "zayatz" if estimates["zayatz"] < estimates["snb"] else "snb"
