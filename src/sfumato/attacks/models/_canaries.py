"""Auditing by canaries: a lower bound on epsilon from guesses about who is in the training data.

The bound holds with the stated confidence whatever the attack, so an attack can refute a promise of differential
privacy but never confirm it. A bound above the promised epsilon means that the promise is broken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.rng import Rng
from sfumato.stats import clopper_pearson

_LARGEST = 60.0


@dataclass(frozen=True, kw_only=True)
class CanaryAudit:
    """The result of an audit."""

    epsilon: float
    """Lower bound on epsilon."""
    confidence: float
    guesses: int
    correct: int

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return asdict(self)

    def refutes(self, epsilon: float) -> bool:
        """Whether the promise of this epsilon is broken."""
        return self.epsilon > epsilon


def one_run_bound(correct: int, guesses: int, *, canaries: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Lower bound on epsilon from guesses about canaries that were each included with probability 1/2 in one run.

    Reference: Steinke, T., Nasr, M., Jagielski, M. (2023). Privacy auditing with one (1) training run.
    arXiv:2305.08846, theorem 5.2.

    >>> round(one_run_bound(100, 100, canaries=100), 2)
    3.49
    >>> one_run_bound(50, 100, canaries=100)
    0.0
    """
    if not 0 <= correct <= guesses <= canaries:
        raise BadParameter("There are at most as many correct guesses as guesses, and as many guesses as canaries.")
    return _largest(lambda epsilon: _one_run_p(correct, guesses, canaries, epsilon, delta) <= 1 - confidence)


def _one_run_p(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """The probability of so many correct guesses if the run were (epsilon, delta)-differentially private, at most."""
    from scipy.stats import binom

    rate = 1 / (1 + np.exp(-epsilon))
    tail = float(binom.sf(correct - 1, guesses, rate))
    if not delta or not correct:
        return tail
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, rate))
    return min(1.0, tail + 2 * canaries * delta * float((below / np.arange(1, correct + 1)).max()))


def repeated_bound(
    hits: int, runs_with: int, false_alarms: int, runs_without: int, *, delta: float = 0.0, confidence: float = 0.95
) -> float:
    """Lower bound on epsilon from runs with and without a canary, by exact (Clopper-Pearson) binomial limits.

    >>> round(repeated_bound(990, 1000, 100, 1000), 2)
    3.8
    """
    if not (0 <= hits <= runs_with and 0 <= false_alarms <= runs_without and runs_with and runs_without):
        raise BadParameter("There are at most as many hits as runs.")
    tail = (1 - confidence) / 4  # two limits in each of two directions

    def ratio(caught: int, runs: int, wrong: int, others: int) -> float:
        least, most = clopper_pearson(caught, runs, tail)[0], clopper_pearson(wrong, others, tail)[1]
        return float(np.log((least - delta) / most)) if least > delta and most > 0 else 0.0

    misses, rejections = runs_with - hits, runs_without - false_alarms
    return max(
        0.0, ratio(hits, runs_with, false_alarms, runs_without), ratio(rejections, runs_without, misses, runs_with)
    )


def audit_one_run(
    score: Callable[[npt.NDArray[np.bool_]], npt.ArrayLike],
    canaries: int,
    *,
    rng: Rng,
    share: float = 0.2,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> CanaryAudit:
    """Audit one training run. ``score`` trains with the canaries marked True and scores every canary.

    The share of canaries with the highest scores is guessed to be included, that with the lowest not to be.
    """
    included = rng.child("canaries").generator.random(canaries) < 0.5
    scores = np.asarray(score(included.copy()), dtype=np.float64)
    each = int(canaries * share / 2)
    if scores.shape != (canaries,) or each < 1:
        raise BadParameter("The audit needs one score per canary and at least one guess of either kind.")
    order = np.argsort(scores, kind="stable")
    correct = int((~included[order[:each]]).sum() + included[order[canaries - each :]].sum())
    bound = one_run_bound(correct, 2 * each, canaries=canaries, delta=delta, confidence=confidence)
    return CanaryAudit(epsilon=bound, confidence=confidence, guesses=2 * each, correct=correct)


def audit_repeated(
    score: Callable[[bool], float], runs: int, *, delta: float = 0.0, confidence: float = 0.95
) -> CanaryAudit:
    """Audit by many runs with and without one canary. The threshold is chosen on a quarter of the runs."""
    if runs < 20:
        raise BadParameter("An audit needs at least 20 runs.", runs=runs)
    inside, outside = (np.array([score(included) for _ in range(runs)]) for included in (True, False))
    first = runs // 4
    if np.median(inside[:first]) < np.median(outside[:first]):
        inside, outside = -inside, -outside

    def counts(cut: float, part: slice) -> tuple[int, int]:
        return int((inside[part] > cut).sum()), int((outside[part] > cut).sum())

    def bound(hits: int, alarms: int, number: int) -> float:
        return repeated_bound(hits, number, alarms, number, delta=delta, confidence=confidence)

    cuts = np.unique(np.concatenate([inside[:first], outside[:first]]))
    best = max(cuts, key=lambda cut: bound(*counts(cut, slice(None, first)), first))
    hits, alarms = counts(best, slice(first, None))
    number = runs - first
    return CanaryAudit(
        epsilon=bound(hits, alarms, number),
        confidence=confidence,
        guesses=2 * number,
        correct=hits + number - alarms,
    )


def _largest(refuted: Callable[[float], bool]) -> float:
    """The largest epsilon that is refuted; 0 if none is."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, _LARGEST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
