"""Undecided columns of a release: released columns whose role nobody has decided."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.evaluation.check import Check, Subject
from sfumato.release import State, Verdict

__all__ = ["UNDECIDED", "UndecidedRoles"]

UNDECIDED = "undecided columns"
"""The name of the verdict."""


class UndecidedRoles(Check):
    """The release holds no column whose role nobody has decided."""

    @classmethod
    def verdict_name(cls) -> str:
        return UNDECIDED

    def applies(self, subject: Subject) -> bool:
        return any(name in subject.columns for name in subject.schema.names(Role.UNDECIDED))

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        names = [name for name in subject.schema.names(Role.UNDECIDED) if name in subject.columns]
        reason = f"Nobody has decided the role of {', '.join(f'`{name}`' for name in names)}; see `sfumato decide`."
        return (Verdict(model=UNDECIDED, state=State.FAILS, worst=len(names), wanted=0, reason=reason),)
