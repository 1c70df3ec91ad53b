"""Undecided columns of a release: released columns whose role nobody has decided."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.evaluation.check import Check, Subject
from sfumato.release import State, Verdict

UNDECIDED = "undecided columns"
"""The name of the verdict."""


class UndecidedRoles(Check):
    """The release holds no column whose role nobody has decided: declared as undecided, or, in a file that was made
    elsewhere, not declared at all.
    """

    @classmethod
    def verdict_name(cls) -> str:
        return UNDECIDED

    def applies(self, subject: Subject) -> bool:
        return bool(_undecided(subject))

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        names = _undecided(subject)
        reason = f"Nobody has decided the role of {', '.join(f'`{name}`' for name in names)}; see `sfumato decide`."
        return (Verdict(model=UNDECIDED, state=State.FAILS, worst=len(names), wanted=0, reason=reason),)


def _undecided(subject: Subject) -> list[str]:
    declared = subject.schema.columns
    return [
        name
        for name in subject.columns
        if (declared[name].role is Role.UNDECIDED if name in declared else subject.foreign)
    ]
