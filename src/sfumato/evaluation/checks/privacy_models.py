"""Verdicts on the privacy models that the recipe names."""

from __future__ import annotations

from sfumato.evaluation.check import Check, Subject
from sfumato.release import State, Verdict


class PrivacyModels(Check):
    """Every privacy model of the recipe has a verdict.

    The engine that holds the rows evaluates the models; ``sfumato check`` evaluates them by independent formulas.
    """

    turn = 0

    @classmethod
    def verdict_name(cls) -> str:
        return "privacy models"

    def applies(self, subject: Subject) -> bool:
        return bool(subject.models or subject.model_verdicts)

    def judge(self, subject: Subject) -> tuple[Verdict, ...]:
        judged = [verdict.model for verdict in subject.model_verdicts]
        left = []
        for model in subject.models:
            if (name := model.part_name()) in judged:
                judged.remove(name)
            else:
                left.append(Verdict(model=name, state=State.NOT_CHECKED, reason="Nothing judged it."))
        return (*subject.model_verdicts, *left)
