"""Parameters of an audit: what everyone must keep, and how decisions are made."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sfumato.field_docs import DocumentedModel
from sfumato.params import InputFile

Share = Annotated[float, Field(ge=0, le=1)]


class AuditRules(DocumentedModel):
    """k-assign anonymity with the options of an audit; shared by the policy, the command line and Python."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    """Public shares of the values, by sensitive column and value: for ``allow`` above 0 and for ``probable``."""
    probable: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The largest probability that any value of any person may have, given all answers and the declared ``shares``."""
    known: dict[str, str] | InputFile = {}
    """Values that the adversary knows already: by sensitive column, a condition on the other columns that selects the
    people; or a CSV file with columns that identify people and their values. These people keep nothing, and all others
    must keep what the rule says."""
    independent: tuple[str, ...] = ()
    """Sensitive columns that do not determine each other. Other columns are not queried together with them."""
    offers: Annotated[int, Field(ge=0, le=10)] = 0
    """Most other queries that a refusal names because they would be answered: coarser ones, or with one condition
    less."""
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
        if self.allow and not self.simulatable:
            raise ValueError("allow belongs to simulatable decisions; set simulatable as well")
        if bool(self.allow or self.probable) != bool(self.shares):
            raise ValueError("allow above 0 and probable need public shares of the values, and shares need one of them")
        if self.probable is not None and self.counterfeits:
            raise ValueError("probabilities are not computed for lists with counterfeits; leave out one of them")
        if self.probable is not None and self.auditor == "delta2":
            raise ValueError("the delta2 auditor does not compute probabilities; use exact")
        for column, shares in self.shares.items():
            if self.probable is not None and max(shares.values()) > self.probable:
                raise ValueError(f"a share of {column} is larger than probable, so that no answer at all could be safe")
        if self.auditor == "delta2" and (self.simulatable or self.counterfeits):
            raise ValueError("the delta2 auditor neither adds counterfeits nor decides simulatably; use exact")
        return self
