"""The ``policy:`` of a metadata file: how questions about a data set are answered.

.. code-block:: yaml

    policy: differential-privacy             # what holds when the key is left out
    policy: {audit: {k: 2, counterfeits: 1}} # exact answers, or none
    policy: {consistent-sample: 0.9}
    policy: {perturbed: {file: masked.csv}}
    policy: {rounding: 5}
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from sfumato.errors import UnknownPart
from sfumato.params import Part, plain_message
from sfumato.registry import registry

__all__ = ["AuditRules", "ChosenPolicy", "PolicyChoice"]

_PRIVATE = "differential-privacy"


class AuditRules(BaseModel):
    """By what the auditor decides."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    k: Annotated[int, Field(ge=2)]
    """Fewest possible values everyone must keep."""
    counterfeits: Annotated[int, Field(ge=0)] = 0
    """Most false values added to a list of values instead of refusing it."""
    simulatable: bool = False
    """Decide before looking at the answer, so that a refusal tells nothing."""
    allow: Annotated[float, Field(ge=0, lt=1)] = 0.05
    """Simulatable: share of possible answers that may break the rule."""
    effort: Annotated[float, Field(gt=0)] = 30.0
    """Bound on the search of one decision, in the solver's deterministic seconds; running out is a no."""

    @model_validator(mode="after")
    def _looks_or_not(self) -> AuditRules:
        if self.simulatable and self.counterfeits:
            raise ValueError("counterfeits are chosen by looking at the answer; simulatable decisions do not look")
        return self


class PolicyChoice(BaseModel):
    """A policy without differential privacy, by name, with its parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    rules: AuditRules | None = None
    """For ``audit``."""
    policy: InstanceOf[Part] | None = None
    """For all others."""

    @property
    def needs_sensitive(self) -> bool:
        """Whether the policy protects columns that the owner must name."""
        return self.rules is not None or (self.name == "perturbed" and getattr(self.policy, "file", None) is None)

    def parameters(self) -> str:
        """The parameters as text that is the same for the same parameters."""
        part = self.rules or self.policy
        return json.dumps(part.model_dump(mode="json") if part is not None else {}, sort_keys=True)


def _chosen(value: Any, info: ValidationInfo) -> Any:
    if isinstance(value, str):
        value = {value: None}
    if value is None or not isinstance(value, dict) or len(value) != 1:
        raise ValueError("must be the name of one policy, alone or with its parameters")
    [(name, given)] = value.items()
    known = registry("policy")
    if name not in known:
        try:
            known.get(name)
        except UnknownPart as unknown:
            raise ValueError(str(unknown)) from None
    if name == _PRIVATE:
        if given:
            raise ValueError("each question brings its own cost and the ledger has the budget; no parameters here")
        return None
    if name == "audit":
        return PolicyChoice(name=name, rules=_built(AuditRules, name, {} if given is None else given, info))
    part = known.get(name)
    policy = _built(part, name, given, info)
    if getattr(policy, "overlap", None) is not None:
        raise ValueError(
            "size-control: overlap needs a memory of all questions, which this policy does not keep; use audit"
        )
    if name == "perturbed":
        if (policy.file is None) == (policy.swap is None):
            raise ValueError("perturbed: give a `file`, or a share to `swap`")
        if policy.column is not None:
            raise ValueError("perturbed: the query names the columns of the copy; leave out `column`")
    return PolicyChoice(name=name, policy=policy)


def _built(kind: Any, name: str, given: Any, info: ValidationInfo) -> Any:
    try:
        return kind.model_validate(given, context=info.context)
    except ValidationError as failure:
        told = [f"{'.'.join([name, *map(str, e['loc'])])}: {plain_message(e, kind)}" for e in failure.errors()]
        raise ValueError("; ".join(told)) from None


ChosenPolicy = Annotated[PolicyChoice | None, BeforeValidator(_chosen)]
"""The type of the key; None is differential privacy."""
