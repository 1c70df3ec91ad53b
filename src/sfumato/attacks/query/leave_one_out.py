"""Leave-one-out attack: regressions or variances with and without one person."""

from __future__ import annotations

import math

import numpy as np

from sfumato.attacks.query._base import RecoveredBits, TargetedQueryAttack, bits_from_scores
from sfumato.attacks.query._sql import SqlResponder
from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import NotApplicable
from sfumato.query.policy import Responder
from sfumato.rng import Rng


class LeaveOneOut(TargetedQueryAttack):
    """An analyst asks for regression coefficients, or for variances, over everybody and over all but one person.

    Slope and intercept of a regression on a known number x give the sum: n (intercept + slope mean(x)). Two variances
    and the mean over everybody give the distance of the person from the mean, which leaves two values:
    n V - (n - 1) V' = n / (n - 1) (y - mean)^2. No sum or mean over fewer people is asked. The attack needs SQL and a
    sensitive column of numbers.
    """

    needs_sql = True
    examples = ({"targets": 20},)
    reference = "Denning (1982), Cryptography and Data Security, chapter 6, ISBN 0-201-10150-5"

    def run(self, responder: Responder, rng: Rng) -> RecoveredBits:
        if not isinstance(responder, SqlResponder) or not responder.secret.sums:
            raise NotApplicable("The attack needs an SQL session and a sensitive column of numbers.")
        targets = self.draw_targets(responder.people, rng)
        size = responder.ask_sql(responder.select("COUNT(*)"))
        score = np.full(len(targets), np.nan)
        if size is not None and size > 2:
            whole = self._sum(responder, "", size)
            for place, target in enumerate(targets):
                others = f"NOT {responder.conditions.person(int(target))}"
                rest = None if whole is None else self._sum(responder, others, size - 1)
                found = whole - rest if whole is not None and rest is not None else None
                found = self._from_variances(responder, others, size) if found is None else found
                score[place] = np.nan if found is None else responder.secret.scaled(found, 1)
        return bits_from_scores(targets, score)

    def _sum(self, responder: SqlResponder, condition: str, size: float) -> float | None:
        """The sum over people, from a regression on the number that identifies them."""
        known = responder.conditions.number
        if known is None:
            return None
        pair = f"{responder.secret.number}, {quoted_name(known)}"
        texts = (f"REGR_SLOPE({pair})", f"REGR_INTERCEPT({pair})", f"AVG({quoted_name(known)})")
        slope, intercept, mean = (responder.ask_sql(responder.select(text, condition)) for text in texts)
        return None if slope is None or intercept is None or mean is None else size * (intercept + slope * mean)

    def _from_variances(self, responder: SqlResponder, others: str, size: float) -> float | None:
        """Of the two numbers at the right distance from the mean, the one nearer to an end of the range."""
        number, secret = responder.secret.number, responder.secret
        mean = responder.ask_sql(responder.select(f"AVG({number})"))
        whole, rest = (responder.ask_sql(responder.select(f"VAR_POP({number})", where)) for where in ("", others))
        if mean is None or whole is None or rest is None:
            return None
        away = math.sqrt(max(0.0, (size * whole - (size - 1) * rest) * (size - 1) / size))
        return min((mean - away, mean + away), key=lambda value: min(abs(value - secret.low), abs(value - secret.high)))
