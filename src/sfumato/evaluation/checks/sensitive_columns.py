"""Sensitive columns that no privacy model protects."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.evaluation.check import Check, Subject
from sfumato.release import State, Verdict

UNPROTECTED = "sensitive columns"
"""The name of the verdict."""


class SensitiveColumns(Check):
    """Every released sensitive column is under a model about attributes, where the recipe has such a model at all.

    A model without ``column`` is about all sensitive columns.
    """

    turn = 0

    @classmethod
    def verdict_name(cls) -> str:
        return UNPROTECTED

    def applies(self, subject: Subject) -> bool:
        return any("attribute" in model.protects for model in subject.models) and not subject.synthetic

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        named = {getattr(model, "column", None) for model in subject.models if "attribute" in model.protects}
        names = [name for name in subject.schema.names(Role.SENSITIVE) if name in subject.columns]
        left = [] if None in named else [name for name in names if name not in named]
        if not left:
            return ()
        columns = ", ".join(f"`{name}`" for name in left)
        reason = f"No model limits what is learned about {columns}. Leave out `column`, or add a model for each."
        return (Verdict(model=UNPROTECTED, state=State.NOT_CHECKED, reason=reason),)
