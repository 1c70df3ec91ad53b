"""Expression attack: aggregates of expressions that are about one person, or that make noise negligible."""

from __future__ import annotations

import numpy as np

from sfumato.attacks.query._base import RecoveredBits, TargetedQueryAttack, bits_from_scores
from sfumato.attacks.query._sql import SqlResponder
from sfumato.errors import NotApplicable
from sfumato.query.policy import Responder
from sfumato.rng import Rng

_FACTOR = 1_000_000
_FORMS = (
    (f"SUM(CASE WHEN {{person}} THEN ({{number}}) * {_FACTOR} ELSE 0 END)", "", _FACTOR),
    (f"SUM(({{number}}) * {_FACTOR})", "{person}", _FACTOR),
    ("SUM(CASE WHEN {person} THEN {number} ELSE 0 END)", "", 1),
    ("AVG(CASE WHEN {person} THEN {number} END)", "", 1),
    ("MAX(CASE WHEN {person} THEN {number} END)", "", 1),
    ("AVG({number})", "{person}", 1),
    ("MAX({number})", "{person}", 1),
    ("SUM({number})", "{person} OR ({person} AND TRUE)", 1),
)
"""Aggregate, condition, and the factor of the answer. All are about one person."""
_COUNTS = (
    ("COUNT(CASE WHEN {person} AND {holds} THEN 1 END)", ""),
    ("COUNT(*)", "{person} AND {holds}"),
    ("COUNT(*)", "NOT (NOT {person} OR NOT ({holds}))"),
)
"""Counts that are 1 iff the target's bit is 1."""


class Expressions(TargetedQueryAttack):
    """An analyst asks about one person in ways that a check of the WHERE clause or of the query set size may overlook.

    The value of one person is summed by CASE over everybody, averaged, multiplied by a million so that rounding and
    noise become negligible, or counted by a condition. The attack needs SQL; a form that is refused by its text is not
    tried again.
    """

    needs_sql = True
    examples = ({"targets": 40},)
    reference = "Denning (1982), Cryptography and Data Security, chapter 6, ISBN 0-201-10150-5"

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        if not isinstance(responder, SqlResponder):
            raise NotApplicable("The attack writes SQL expressions, and there is no SQL session.")
        targets = self.draw_targets(responder.people, rng)
        score = np.full(len(targets), np.nan)
        forms, counts = list(_FORMS), list(_COUNTS)
        for place, target in enumerate(targets):
            words = {
                "person": responder.conditions.person(int(target)),
                "number": responder.secret.number, "holds": responder.secret.condition,
            }  # fmt: skip
            for form in tuple(forms):
                aggregate, condition, factor = form
                before = responder.texts_refused
                answer = responder.ask_sql(responder.select(aggregate.format(**words), condition.format(**words)))
                if responder.texts_refused > before:
                    forms.remove(form)
                if answer is not None:
                    score[place] = responder.secret.scaled(answer / factor, 1)
                    break
            else:
                for count in tuple(counts):
                    before = responder.texts_refused
                    answer = responder.ask_sql(responder.select(*(text.format(**words) for text in count)))
                    if responder.texts_refused > before:
                        counts.remove(count)
                    if answer is not None:
                        score[place] = answer
                        break
        return bits_from_scores(targets, score)
