"""Intersection of a release with earlier releases about the same people."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.errors import NotApplicable
from sfumato.evaluation.check import Check, Need, Subject
from sfumato.evaluation.intersection import guard_intersection
from sfumato.release import Release, State, Verdict

__all__ = ["EarlierReleases"]

INTERSECTION = "intersection"
"""The name of the verdict."""


class EarlierReleases(Check):
    """All releases about the same people together leave everybody at least two values of each sensitive column."""

    needs = frozenset({Need.ORIGINAL})
    turn = 2

    @classmethod
    def verdict_name(cls) -> str:
        return INTERSECTION

    def applies(self, subject: Subject) -> bool:
        return bool(subject.earlier)

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        original, table, _ = subject.pair
        release = Release(table=table, manifest={})
        secrets = [name for name in subject.schema.names(Role.SENSITIVE) if name in subject.columns]
        verdicts = []
        for secret in secrets:
            try:
                found = guard_intersection(release, subject.earlier, original=original, l=2, column=secret)
                verdicts += [result.verdict for result in found]
            except NotApplicable as refusal:
                verdicts.append(Verdict(model=INTERSECTION, state=State.NOT_CHECKED, reason=str(refusal)))
        return tuple(verdicts)
