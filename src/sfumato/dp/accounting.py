"""Tighter totals for many answers, and running totals for sequences that depend on their own answers.

Adding up losses is always right. Rényi and privacy-loss-distribution accounting (Google's dp-accounting) prove a
smaller epsilon for the same answers when a delta is allowed. Both keep a count per distinct loss, so a thousand equal
answers cost one composition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction

from sfumato.dp.loss import NOTHING, PrivacyLoss, PrivacyMeasure, advanced, sequential
from sfumato.errors import BadParameter, ExtraMissing, NotComparable, OverBudget, missing_extra
from sfumato.rationals import Number, rational

__all__ = ["Odometer", "PrivacyFilter", "by_distribution", "by_renyi", "tightest"]

_ORDERS = [1 + k / 10 for k in range(1, 100)] + [float(k) for k in range(11, 64)] + [2.0**k for k in range(6, 16)]
_ROUND = Fraction(10**9 + 1, 10**9)
"""The libraries compute in floats; one part in a billion on top covers their rounding."""


def _counted(losses: Iterable[PrivacyLoss] | Mapping[PrivacyLoss, int]) -> Counter[PrivacyLoss]:
    return Counter(dict(losses)) if isinstance(losses, Mapping) else Counter(losses)


def _missing() -> ExtraMissing:
    return missing_extra("accounting", "dp-accounting", needed_by="Composition of privacy losses")


def _split(delta: Number, total: Fraction) -> Fraction:
    rest = rational(delta) - total
    if not 0 < rest < 1:
        raise NotComparable("The delta must exceed the sum of the answers' own deltas.")
    return rest


def by_renyi(losses: Iterable[PrivacyLoss] | Mapping[PrivacyLoss, int], *, delta: Number) -> PrivacyLoss:
    """The total by Rényi accounting: pure losses enter as min(epsilon, order·epsilon²/2), concentrated as order·rho.

    Mironov 2017, doi:10.1109/CSF.2017.11; pure losses by Bun and Steinke 2016, Proposition 3.3.
    """
    try:
        from dp_accounting import rdp
    except ImportError:
        raise _missing() from None
    counted = _counted(losses)
    own = sum((loss.delta * count for loss, count in counted.items()), Fraction(0))
    rest = _split(delta, own)
    curve = [0.0] * len(_ORDERS)
    for loss, count in counted.items():
        size = float(loss.size)
        for i, order in enumerate(_ORDERS):
            cost = order * size if loss.measure is PrivacyMeasure.RHO else min(size, order * size * size / 2)
            curve[i] += count * cost
    epsilon, _ = rdp.compute_epsilon(_ORDERS, curve, float(rest))
    return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=Fraction(float(epsilon)) * _ROUND, delta=rational(delta))


def by_distribution(losses: Iterable[PrivacyLoss] | Mapping[PrivacyLoss, int], *, delta: Number) -> PrivacyLoss:
    """The total by privacy loss distributions, for losses in epsilon.

    Each loss enters as its worst case, a biased coin that no (epsilon, delta)-private mechanism exceeds (Kairouz, Oh,
    Viswanath 2017), so the total holds for any mechanisms. Discretization rounds up. A loss in rho has no such worst
    case and is refused; use :func:`by_renyi`.
    """
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
    except ImportError:
        raise _missing() from None
    total = None
    for loss, count in _counted(losses).items():
        if loss.measure is not PrivacyMeasure.EPSILON:
            raise NotComparable("A loss in rho has no privacy loss distribution of its own.", fix="Use by_renyi.")
        part = privacy_loss_distribution.from_privacy_parameters(
            common.DifferentialPrivacyParameters(float(loss.size), float(loss.delta)),
            value_discretization_interval=1e-4,
        )
        part = part.self_compose(count) if count > 1 else part
        total = part if total is None else total.compose(part)
    if total is None:
        return NOTHING.at(delta)
    epsilon = float(total.get_epsilon_for_delta(float(rational(delta))))
    if epsilon == float("inf"):
        raise NotComparable("The delta must exceed the sum of the answers' own deltas.")
    return PrivacyLoss(measure=PrivacyMeasure.EPSILON, size=Fraction(max(0.0, epsilon)) * _ROUND, delta=rational(delta))


def tightest(losses: Iterable[PrivacyLoss] | Mapping[PrivacyLoss, int], *, delta: Number) -> tuple[str, PrivacyLoss]:
    """The smallest total at that delta and the name of the theorem that proves it."""
    counted = _counted(losses)
    flat = list(counted.elements())
    found: dict[str, PrivacyLoss] = {}
    in_epsilon = all(loss.measure is PrivacyMeasure.EPSILON for loss in flat)
    total = sequential(flat)
    if total.measure is PrivacyMeasure.EPSILON and total.delta <= rational(delta):
        found["sum"] = total.at(delta)
    elif total.measure is PrivacyMeasure.RHO and total.delta < rational(delta):
        found["concentrated"] = total.at(delta)
    if in_epsilon and total.delta < rational(delta):
        found["advanced"] = advanced(flat, rational(delta) - total.delta).at(delta)
    for name, account in (("renyi", by_renyi), ("distribution", by_distribution)):
        if (in_epsilon or name == "renyi") and total.delta < rational(delta):
            found[name] = account(counted, delta=delta)
    if not found:
        raise NotComparable("The delta must exceed the sum of the answers' own deltas.")
    name = min(found, key=lambda key: found[key].size)
    return name, found[name]


class PrivacyFilter:
    """Stops an adaptive sequence before its total passes a budget fixed in advance.

    Both the questions and their losses may depend on earlier answers. Valid for sums in epsilon and delta (Rogers,
    Roth, Ullman and Vadhan 2016) and for sums in rho (Feldman and Zrnic 2021, doi:10.48550/arXiv.2008.11193):
    adaptivity then costs nothing extra.
    """

    def __init__(self, budget: PrivacyLoss) -> None:
        self.budget = budget
        self.spent = NOTHING

    def admit(self, loss: PrivacyLoss) -> None:
        """Count the loss, or refuse it and count nothing."""
        total = (self.spent + loss).to(self.budget.measure)
        if not total <= self.budget:
            raise OverBudget(
                f"This needs {loss}; of {self.budget} in all, {self.spent} is spent.",
                fix="Ask for less, or for a larger error.",
                requested=loss,
                spent=self.spent,
                budget=self.budget,
            )
        self.spent = total


class Odometer:
    """What an adaptive sequence has lost so far, at any time it may be stopped.

    Sums in epsilon and delta hold at every time. For rho the sum alone does not bound a *stopped* sequence in (epsilon,
    delta); the reading is that of the smallest of a doubling row of filters that has not closed, filter i being read at
    delta / (i·(i+1)), which adds up to delta (Feldman and Zrnic 2021, section 4.2; Whitehouse et al. 2023).
    """

    def __init__(self, *, first: Number = Fraction(1, 100)) -> None:
        self.first = rational(first)
        if self.first <= 0:
            raise BadParameter("the first reading of an odometer must be above 0.")
        self.spent = NOTHING

    def add(self, loss: PrivacyLoss) -> None:
        self.spent = self.spent + loss

    def reading(self, *, delta: Number = 0) -> PrivacyLoss:
        """An upper bound on the loss up to now."""
        if self.spent.measure is PrivacyMeasure.EPSILON:
            return self.spent
        number, size = 1, self.first
        while size < self.spent.size:
            number, size = number + 1, size * 2
        share = rational(delta) / (number * (number + 1))
        if share <= 0:
            raise NotComparable("An odometer over rho is read at a delta above 0.")
        bound = PrivacyLoss(measure=PrivacyMeasure.RHO, size=size, delta=self.spent.delta)
        return bound.at(self.spent.delta + share)
