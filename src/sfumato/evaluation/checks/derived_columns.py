"""Derived columns of a release: released columns from which a masked or removed column can be computed."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.evaluation.check import Check, Need, Subject
from sfumato.evaluation.derived_columns import derived_columns
from sfumato.release import State, Verdict

DERIVED = "derived columns"
"""The name of the verdict."""
_SHOWN = 5


class DerivedColumns(Check):
    """No released column determines a column that was masked or removed, such as a year of birth beside an age.

    Of a file in an engine a random part of the rows is compared: a relation that holds in all rows holds there, too.
    Tables with fewer than 50 rows have no verdict, since a relation cannot be told from a coincidence there.
    """

    needs = frozenset({Need.ORIGINAL})

    @classmethod
    def verdict_name(cls) -> str:
        return DERIVED

    def applies(self, subject: Subject) -> bool:
        hidden = (Role.IDENTIFIER, Role.QUASI) if subject.models else (Role.IDENTIFIER,)
        telling = any(subject.schema.column(name).role not in hidden for name in subject.columns)
        return telling and not subject.synthetic

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        assert subject.original is not None
        found = derived_columns(
            subject.original, subject.release, subject.schema, lineage=subject.lineage, together=bool(subject.models)
        )
        if not found:
            return ()
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        reason = (
            f"{'; '.join(map(str, found[:_SHOWN]))}{more}. Drop the released columns, or give them the role `quasi` so "
            "that they are masked together."
        )
        return (Verdict(model=DERIVED, state=State.FAILS, worst=len(found), wanted=0, reason=reason),)
