"""Copied rows of a synthetic release: rows that repeat the whole record of one person."""

from __future__ import annotations

from sfumato.evaluation.check import Check, Need, Subject
from sfumato.evaluation.copied_rows import COPIED, copied_verdict
from sfumato.release import Verdict

__all__ = ["CopiedRows"]


class CopiedRows(Check):
    """No row of a synthetic release is a copy of a person's record.

    Only records count that have a number nobody else has, in a column in which most people have such a number: other
    records may recur by coincidence. There is no verdict if no column is like that.
    """

    needs = frozenset({Need.ORIGINAL, Need.LINEAGE})

    @classmethod
    def verdict_name(cls) -> str:
        return COPIED

    def applies(self, subject: Subject) -> bool:
        return subject.synthetic

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        original, release, lineage = subject.pair
        return copied_verdict(original.table, release, lineage)
