"""Repeated collection: what one person loses over time, and what an observer of all their reports learns.

Reports of the same answer drawn anew add up: their losses compose. A memoized report (the permanent response) is drawn
once per answer, so that repeating it costs nothing; every new answer costs the loss again, and the observer sees that
something changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.collecting.frequency_protocol import FrequencyProtocol
from sfumato.dp.loss import PrivacyLoss
from sfumato.errors import BadParameter
from sfumato.rng import Rng
from sfumato.stats import clopper_pearson


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """A collection over time and its loss per report, per day and in all, for one person.

    >>> from sfumato.dp import pure
    >>> apple = Deployment(loss=pure(4), reports_per_day=2, days=30, memoized=False)
    >>> float(apple.per_day().size), float(apple.total().size)
    (8.0, 240.0)
    >>> kept = Deployment(loss=pure(4), reports_per_day=2, days=30, memoized=True, answers=3)
    >>> float(kept.total().size)
    12.0
    """

    loss: PrivacyLoss
    reports_per_day: int
    days: int
    memoized: bool
    answers: int = 1
    """Different answers that one person has over the whole deployment."""

    def __post_init__(self) -> None:
        if self.reports_per_day < 1 or self.days < 1 or self.answers < 1:
            raise BadParameter("A deployment needs at least one report a day, one day and one answer.")

    def per_day(self) -> PrivacyLoss:
        """Loss of one day on which the answer does not change."""
        return self.loss.times(1 if self.memoized else self.reports_per_day)

    def total(self) -> PrivacyLoss:
        """Loss of the whole deployment by sequential composition; no budget is refilled."""
        spent = self.answers if self.memoized else self.reports_per_day * self.days
        return self.loss.times(min(spent, self.reports_per_day * self.days))


@dataclass(frozen=True, kw_only=True)
class TrackingResult:
    """How often an observer of all reports names a person's answer."""

    reports: int
    right: float
    low: float
    high: float
    baseline: float
    """Share of the most frequent answer: what guessing without reports achieves."""


def averaging_attack(
    protocol: FrequencyProtocol,
    codes: npt.ArrayLike,
    *,
    reports: int,
    memoized: bool,
    rng: Rng,
    people: int = 1000,
    confidence: float = 0.95,
) -> TrackingResult:
    """Observe every report of a person and name the most likely answer (maximum posterior with the true shares)."""
    true = np.asarray(codes, dtype=np.int64)
    if reports < 1 or not len(true):
        raise BadParameter("The attack needs at least one person and one report.")
    prior = np.bincount(true, minlength=protocol.values) / len(true)
    targets = true[rng.child("targets").generator.integers(0, len(true), people)]
    support = np.zeros((people, protocol.values))
    for _ in range(1 if memoized else reports):
        support += protocol.supported(protocol.randomize(targets))
    with np.errstate(divide="ignore"):
        score = np.log(prior) + support * np.log(float(protocol.ratio()))
    hits = int((score.argmax(axis=1) == targets).sum())
    low, high = clopper_pearson(hits, people, (1 - confidence) / 2)
    return TrackingResult(
        reports=reports,
        right=hits / people,
        low=low,
        high=high,
        baseline=float(prior.max()),
    )
