"""Parameters of an audit: what everyone must keep, and how decisions are made."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["AuditRules"]

Share = Annotated[float, Field(ge=0, le=1)]


class AuditRules(BaseModel):
    """k-assign anonymity with the options of an audit; shared by the policy, the command line and Python."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    k: Annotated[int, Field(ge=2)]
    """Fewest possible values everyone must keep."""
    counterfeits: Annotated[int, Field(ge=0)] = 0
    """Most false values added to a list of values instead of refusing it."""
    simulatable: bool = False
    """Decide before looking at the answer, so that a refusal reveals nothing."""
    allow: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Simulatable: share of possible answers that may break the rule. 0: every possible answer is checked and none may.
    Above 0: answers are drawn with the declared ``shares``."""
    shares: dict[str, dict[str, Share]] = {}
    """Simulatable: public shares of the values, by sensitive column and value."""
    independent: tuple[str, ...] = ()
    """Sensitive columns that do not determine each other. Other columns are not queried together with them."""
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
        if (self.allow or self.shares) and not self.simulatable:
            raise ValueError("allow and shares belong to simulatable decisions; set simulatable as well")
        if bool(self.allow) != bool(self.shares):
            raise ValueError("allow above 0 needs the public shares of the values, and shares need allow above 0")
        if self.auditor == "delta2" and (self.simulatable or self.counterfeits):
            raise ValueError("the delta2 auditor neither adds counterfeits nor decides simulatably; use exact")
        return self
