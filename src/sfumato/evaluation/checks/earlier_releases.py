"""Intersection of a release with earlier releases about the same people."""

from __future__ import annotations

from sfumato.dataset import Role
from sfumato.errors import NotApplicable
from sfumato.evaluation.check import Check, Need, Subject
from sfumato.evaluation.intersection import guard_intersection, secrets_of
from sfumato.release import Release, State, Verdict
from sfumato.release.class_counts import CannotCheck

INTERSECTION = "intersection"
"""The name of the verdict."""


class EarlierReleases(Check):
    """All releases about the same people together leave everybody at least two values of each sensitive column.

    A column is sensitive if any of the releases says so. Rows are linked by all columns that the releases share.
    """

    needs = frozenset({Need.ORIGINAL})
    turn = 2

    @classmethod
    def verdict_name(cls) -> str:
        return INTERSECTION

    def applies(self, subject: Subject) -> bool:
        return bool(subject.earlier)

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        original, table, _ = subject.pair
        release = Release(table=table, manifest={"steps": list(subject.steps)})
        here = [name for name in subject.schema.names(Role.SENSITIVE) if name in subject.columns]
        secrets = list(dict.fromkeys((*here, *secrets_of(subject.earlier))))
        if not secrets:
            raise CannotCheck("No release names a sensitive column.")
        verdicts = []
        for secret in secrets:
            try:
                found = guard_intersection(release, subject.earlier, original=original, l=2, column=secret)
                verdicts += [result.verdict for result in found]
            except NotApplicable as refusal:
                verdicts.append(Verdict(model=INTERSECTION, state=State.NOT_CHECKED, reason=str(refusal)))
        return tuple(verdicts)
