"""Result privacy: named results of data mining do not come out of the release."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from sfumato.dataset import Data
from sfumato.errors import NotApplicable
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.model import ModelRule, PrivacyModel
from sfumato.masking.results import HiddenResult, ItemsTogether, RuleResult, comes_out
from sfumato.release import State, Verdict
from sfumato.release.class_counts import CannotCheck, ConditionResult, ReleaseCounts


class ResultPrivacy(PrivacyModel):
    """Result privacy: the algorithm that looks for a named result does not find it in the release.

    A result is an association rule, a frequent item set, the accuracy of a classifier for a column, or a correlation.
    The verdict runs the algorithm on the released rows. The results themselves are not published: the manifest of a
    release names the thresholds only, and ``sfumato check`` needs the recipe to check them again.

    It is about the named results alone. Other algorithms, other thresholds and an earlier version of the data may still
    show them, and it does not protect the people in the data.
    """

    protection = "result-driven"
    examples = (
        {"results": [{"together": {"zip": "0", "sex": "F"}}], "support": 0.3},
        {
            "results": [
                {"if": {"zip": "0"}, "then": {"sex": "F"}},
                {"together": {"grade": 4, "zip": "3"}},
            ],
            "support": 0.3,
            "confidence": 0.1,
        },
    )
    reference: ClassVar[str] = (
        "Verykios, Elmagarmid, Bertino, Saygin, Dasseni (2004), Association rule hiding, doi:10.1109/TKDE.2004.1269668"
    )
    promise = "{worst} of the results that the owner named come out of the release"
    protects = frozenset({"result"})
    stronger = {"support": "less", "confidence": "less"}
    on_classes = False
    unpublished = frozenset({"results"})

    results: Annotated[tuple[HiddenResult, ...], Field(min_length=1)]
    """The results to hide: ``{if: {...}, then: {...}}`` for a rule, ``{together: {...}}`` for an item set, ``{predict:
    column, using: [...], at_most: 0.7}`` for the accuracy of a decision tree, ``{correlation: [a, b], at_most: 0.2}``.
    """
    support: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of rows from which the algorithm reports an item set or rule."""
    confidence: Annotated[float, Field(gt=0, le=1)] | None = None
    """Confidence from which the algorithm reports a rule."""

    @model_validator(mode="after")
    def _thresholds(self) -> Self:
        check_thresholds(self.results, self.support, self.confidence)
        return self

    def bind(self, table: EquivalenceClasses) -> ModelRule:
        raise NotApplicable("result-privacy is about all rows of a table, not about its equivalence classes.")

    def check(self, data: Data, *, original: Data | None = None) -> Verdict:
        name, frame = self.part_name(), data.table.frame
        absent = [column for one in self.results for column in one.columns if column not in frame.columns]
        if frame.height == 0:
            return Verdict(model=name, state=State.NOT_CHECKED, reason="The release has no row.")
        try:
            found = [
                set(one.columns).isdisjoint(absent)
                and comes_out(one, frame, support=self.support, confidence=self.confidence)
                for one in self.results
            ]
        except NotApplicable as refusal:
            return Verdict(model=name, state=State.NOT_CHECKED, reason=str(refusal))
        count = sum(found)
        return Verdict(
            model=name,
            state=State.FAILS if count else State.HOLDS,
            worst=count,
            wanted=0,
            failing=frame.height if count else 0,
            reason=f"{count} of {len(found)} results come out." if count else "",
        )

    @staticmethod
    def independent_check(parameters: Mapping[str, Any], counts: ReleaseCounts) -> ConditionResult:
        if "results" not in parameters:
            raise CannotCheck("The results to hide are not published; name the recipe with --recipe.")
        if counts.rows is None:
            raise CannotCheck("It needs the released rows.")
        rows, found = counts.rows, 0
        for one in parameters["results"]:
            if "predict" in one:
                raise CannotCheck("The accuracy of a classifier has no second implementation.")
            if "correlation" in one:
                left, right = one["correlation"]
                value = rows.correlation(left, right)
                found += value is not None and abs(value) > one["at_most"] + 1e-9
                continue
            items = {**one.get("if", {}), **one.get("then", {}), **one.get("together", {})}
            both = rows.having(items)
            frequent = both > 0 and both >= Fraction(str(parameters["support"])) * rows.total
            if "then" in one:
                base = rows.having(one.get("if", {}))
                frequent = frequent and both >= Fraction(str(parameters["confidence"])) * base
            found += frequent
        reason = f"{found} of {len(parameters['results'])} results come out."
        return ConditionResult(
            worst=found, wanted=0, passes=(), table_holds=not found, failing=rows.total if found else 0, reason=reason
        )


def check_thresholds(results: tuple[HiddenResult, ...], support: float | None, confidence: float | None) -> None:
    """Refuse rules and item sets without the thresholds that define them."""
    if support is None and any(isinstance(one, RuleResult | ItemsTogether) for one in results):
        raise ValueError("rules and item sets need `support`, the share of rows from which they are reported")
    if confidence is None and any(isinstance(one, RuleResult) for one in results):
        raise ValueError("rules need `confidence`, from which they are reported")
