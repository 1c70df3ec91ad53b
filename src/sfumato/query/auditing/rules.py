"""Parameters of an audit: what everyone must keep, and how decisions are made."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["AuditRules"]


class AuditRules(BaseModel):
    """k-assign anonymity with the options of an audit; shared by the policy, the command line and Python."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    k: Annotated[int, Field(ge=2)]
    """Fewest possible values everyone must keep."""
    counterfeits: Annotated[int, Field(ge=0)] = 0
    """Most false values added to a list of values instead of refusing it."""
    simulatable: bool = False
    """Decide before looking at the answer, so that a refusal reveals nothing."""
    allow: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Simulatable: share of possible answers that may break the rule."""
    every_answer: bool = False
    """Simulatable: check every possible answer instead of a sample; refuse if any, or too many to check, break the
    rule."""
    auditor: Literal["exact", "delta2"] = "exact"
    """How lists of values are decided: by exact search, or by the polynomial approximation with delta-2 matchings,
    which refuses more."""
    effort: Annotated[float, Field(gt=0)] = 30.0
    """Bound on the search of one decision, in the solver's deterministic seconds; if it runs out, the query is
    refused."""

    @model_validator(mode="after")
    def _compatible(self) -> Self:
        if self.simulatable and self.counterfeits:
            raise ValueError("counterfeits are chosen by looking at the answer; simulatable decisions do not look")
        if self.every_answer and not self.simulatable:
            raise ValueError("every_answer belongs to simulatable decisions; set simulatable as well")
        if self.auditor == "delta2" and (self.simulatable or self.counterfeits):
            raise ValueError("the delta2 auditor neither adds counterfeits nor decides simulatably; use exact")
        return self
