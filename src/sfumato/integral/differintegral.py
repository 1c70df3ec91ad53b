"""Differintegral privacy: what two differentially private models tell about the change of the data between them.

Normal noise gives every model a positive probability under every data set. So every modification explains every pair of
models, single deletions are minimal, and nobody is in all of them: integral privacy holds for every k up to the number
of records. How much more likely one explanation is than another is bounded by differential privacy of the pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import hypot

from sfumato.dp.analytic_gaussian import normal_epsilon
from sfumato.release.guarantee import Guarantee
from sfumato.release.standing import Standing, judge
from sfumato.release.verdict import State, Verdict

MODEL = "differintegral-privacy"


@dataclass(frozen=True, kw_only=True)
class Differintegral:
    """The verdict about a pair of private models, with the privacy loss of both together."""

    verdict: Verdict
    epsilon: float
    delta: float

    @property
    def standing(self) -> Standing:
        """Whether the new model may be published."""
        return judge([self.verdict.state], limited=True).standing

    def to_dict(self) -> dict[str, object]:
        """The decision as plain data."""
        return {
            "standing": str(self.standing),
            "publish": self.verdict.holds,
            "reason": self.verdict.reason,
            "verdict": self.verdict.to_dict(),
            "epsilon": self.epsilon,
            "delta": self.delta,
        }


def differintegral(old: Guarantee, new: Guarantee, *, people: int, k: int) -> Differintegral:
    """Whether a pair of differentially private models is k-anonymous integrally private, and at which loss.

    ``people`` is the number of people in the old data. Losses in Gaussian differential privacy compose to
    sqrt(mu² + mu'²); others add up.
    """
    delta = old.delta + new.delta
    if old.mu is not None and new.mu is not None:
        squared = Fraction(hypot(old.mu, new.mu)) ** 2 * Fraction(10**9 + 1, 10**9)
        epsilon = float(normal_epsilon(squared, Fraction(delta)))
    else:
        epsilon = old.epsilon + new.epsilon
    both = f"Both models together are ({epsilon:.4g}, {delta:.2g})-differentially private"
    if people >= k:
        reason = (
            f"{both}, and every change of the data explains the pair: {people:,} single deletions, nobody in all of "
            "them. What the pair tells about any one person is bounded by that."
        )
    else:
        reason = f"{both}, but only {people:,} people could have been deleted."
    state = State.HOLDS if people >= k else State.FAILS
    return Differintegral(
        verdict=Verdict(model=MODEL, state=state, wanted=k, worst=people, reason=reason),
        epsilon=epsilon, delta=delta,
    )  # fmt: skip
