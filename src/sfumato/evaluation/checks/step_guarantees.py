"""Verdicts on what masking steps guarantee by themselves."""

from __future__ import annotations

from sfumato.evaluation.check import Check, Subject
from sfumato.masking.base import Step, method_of
from sfumato.release import Verdict


class StepGuarantees(Check):
    """What a published step guarantees by itself holds in the released table, such as k^m-anonymity of item sets.

    It is counted again in the final table, because later steps may undo it.
    """

    turn = -1

    @classmethod
    def verdict_name(cls) -> str:
        return "guarantees of steps"

    def applies(self, subject: Subject) -> bool:
        return bool(subject.steps or subject.step_verdicts)

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        if subject.step_verdicts is not None:
            return tuple(subject.step_verdicts)
        promising = [step for step in subject.steps if _promises(method_of(step))]
        frame = subject.release.load(subject.columns) if promising else None
        return tuple(v for step in promising if frame is not None for v in method_of(step).verify_release(step, frame))


def _promises(method: type[Step]) -> bool:
    return method.verify_release.__func__ is not Step.verify_release.__func__  # type: ignore[attr-defined]
