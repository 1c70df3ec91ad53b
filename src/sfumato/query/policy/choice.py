"""The ``policy:`` key of a metadata file: how queries about a data set are answered.

.. code-block:: yaml

    policy: differential-privacy             # the default
    policy: {audit: {k: 2, counterfeits: 1}} # exact answers or refusals
    policy: {consistent-sample: {share: 0.9, smallest: 10}}
    policy: {perturbed: {file: masked.csv}}
    policy: {rounding: 5}
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from pydantic import BeforeValidator, InstanceOf, ValidationError, ValidationInfo

from sfumato.errors import UnknownPart
from sfumato.params import plain_message
from sfumato.query.policy.base import Policy
from sfumato.registry import registry

__all__ = ["ChosenPolicy"]


def _choose(value: Any, info: ValidationInfo) -> Policy | None:
    if isinstance(value, Policy):
        value = {value.part_name(): value.to_dict()}
    if isinstance(value, str):
        value = {value: None}
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError("must be the name of one policy, alone or with its parameters")
    [(name, parameters)] = value.items()
    try:
        kind = cast("type[Policy]", registry("policy").get(name))
    except UnknownPart as unknown:
        raise ValueError(str(unknown)) from None
    if kind.spends_budget:
        if parameters:
            raise ValueError("each query brings its own cost and the ledger holds the budget; leave out parameters")
        return None
    try:
        policy = kind.model_validate(parameters, context=info.context)
    except ValidationError as failure:
        problems = [f"{'.'.join([name, *map(str, e['loc'])])}: {plain_message(e, kind)}" for e in failure.errors()]
        raise ValueError("; ".join(problems)) from None
    problem = policy.table_problem()
    if problem:
        raise ValueError(f"{name}: {problem}")
    return policy


ChosenPolicy = Annotated[InstanceOf[Policy] | None, BeforeValidator(_choose)]
"""The type of the key; None is differential privacy."""
