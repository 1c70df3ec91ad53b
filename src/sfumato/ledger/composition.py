"""Composition under a budget in epsilon and delta: the best of three accounts of the same charges.

A charge is accepted while one of three accounts of all charges stays within the budget:

* ``sums``: the epsilons add up to at most epsilon;
* ``gaussian``: the squared parameters of Gaussian differential privacy add up to what is (epsilon, tail)-private;
* ``rho``: the zero-concentrated losses add up to what is (epsilon, tail)-private.

A charge has up to two kinds of exceptional events. With the delta of its *curve* it keeps none of its bounds; the rest
of its delta is that of the *sums* alone, such as the delta at which Gaussian noise is stated as an epsilon: there the
noise keeps its Gaussian parameter, but not that epsilon. Delta is divided into four shares, each for one use:
``events`` (3/8) for curve deltas, ``sums`` (1/8) for deltas of the sums alone, ``gaussian`` (3/8) and ``rho`` (1/8) for
the two tails. The sums need that all deltas are at most ``events + sums`` and those of the sums alone at most ``sums``;
the other two accounts need that the curve deltas are at most ``events``.

**Theorem.** All answers together are (epsilon, delta)-private, also if every question and its loss is chosen after
seeing the answers so far.

*Proof.* Fix neighbours, a set A of transcripts, and let p_i, q_i be the densities of answer i given the earlier ones,
for charge i with epsilon e_i, delta d_i and curve delta c_i <= d_i. Totals only grow, so an account that is exceeded
stays so. A transcript ends in exactly one of S (the sums hold), G (only the Gaussian account and perhaps rho hold) and
R (only rho holds), and P(A) is the sum of P over these parts of A.

*S.* There are e_i-indistinguishable parts of p_i and q_i that lack a mass of d_i (Kairouz, Oh, Viswanath 2015,
arXiv 1311.0776, Theorem 3.4), of which c_i is the event of the curve. Products of such parts differ by exp(sum of e_i)
<= exp(epsilon) on S, so P(A and S) <= exp(epsilon) Q(A and S) + P(S, and some event of a charge).

*G.* Outside of an event of mass c_i, the pair is Gaussian private (or zero-concentrated) with the parameters of the
curve. Stop the questions when the account would be exceeded: the stopped transcript is (epsilon, tail)-private outside
of these events, because each account is a privacy filter (``dp.curve`` has the references), and G lies in the
transcripts that were not stopped. Hence P(A and G) <= exp(epsilon) Q(A and G) + tail + P(G, and some curve event).
*R* likewise.

*Sum.* It remains to bound the probability of the events. Those of the sums alone matter on S only, and S is decided
when the last charge is known at which the sums held, say charge t: by linearity of expectation the probability is at
most the largest value, over transcripts, of (d_1 + ... + d_t) + (c_{t+1} + ... + c_n). If n = t, this is at most events
+ sums. If n > t, it is (c_1 + ... + c_n) + (d_1 - c_1 + ... + d_t - c_t) <= events + sums, too. With the two tails this
is at most delta. ∎

The first charge is made before anything was answered, so the division of delta may depend on it: where it does not fit
the usual division, all of delta goes to the first account that it fits, and later charges have that account alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from sfumato.dp.analytic_gaussian import normal_epsilon, pure_within, squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, concentrated, pure
from sfumato.dp.zcdp import epsilon_at, rho_for
from sfumato.errors import BadParameter
from sfumato.ledger.exact_budget import NO_EPSILON, SLACK, Amount, loss_of

__all__ = ["DeltaShares", "delta_shares", "left_of", "part_of", "spent_of", "within"]


@dataclass(frozen=True, kw_only=True)
class DeltaShares:
    """How the delta of a budget is divided; together at most the whole."""

    events: Fraction = Fraction(0)
    """For the curve deltas of the charges: events that no account covers."""
    sums: Fraction = Fraction(0)
    """For the other deltas of the charges, which the sums alone have; 0: that account is not used."""
    gaussian: Fraction = Fraction(0)
    """For the tail of the Gaussian account; 0: the account is not used."""
    rho: Fraction = Fraction(0)
    """For the tail of the account in rho; 0: the account is not used."""

    def fit_sums(self, total: Amount, cap: Amount) -> bool:
        """Whether the sums of the charges keep to a cap."""
        if not self.sums or total.size > cap.size or total.delta > self.events + self.sums:
            return False
        return total.delta - total.curved().delta <= self.sums


def delta_shares(cap: Amount, first: Amount | None) -> DeltaShares:
    """The division of the budget's delta, given the first charge."""
    delta = cap.delta
    usual = DeltaShares(events=delta * 3 / 8, sums=delta / 8, gaussian=delta * 3 / 8, rho=delta / 8)
    if first is None or _composed(first, cap, usual):
        return usual
    used = min(first.curved().delta, delta)
    alone = (
        DeltaShares(sums=delta),
        DeltaShares(events=used, gaussian=delta - used),
        DeltaShares(events=used, rho=delta - used),
    )
    return next((shares for shares in alone if _composed(first, cap, shares)), usual)


def within(total: Amount, cap: Amount, first: Amount | None) -> bool:
    """Whether all charges together keep to a cap; ``first`` is the first of them."""
    if cap.measure is not PrivacyMeasure.EPSILON or not cap.delta:
        return total.fits(cap)
    return total.measure is cap.measure and _composed(total, cap, delta_shares(cap, first))


def _composed(total: Amount, cap: Amount, shares: DeltaShares) -> bool:
    if shares.fit_sums(total, cap):
        return True
    curve, epsilon = total.curved(), cap.size
    if curve.delta > shares.events:
        return False
    if curve.gaussian is not None and curve.gaussian <= _squared(epsilon, shares.gaussian):
        return True
    return curve.rho <= _rho(epsilon, shares.rho)


@lru_cache(maxsize=256)
def _squared(epsilon: Fraction, tail: Fraction) -> Fraction:
    """The largest squared Gaussian parameter that is (epsilon, tail)-private; -1 where none is known."""
    try:
        return squared_for(epsilon, tail)
    except (BadParameter, OverflowError):
        return Fraction(-1)


@lru_cache(maxsize=256)
def _rho(epsilon: Fraction, tail: Fraction) -> Fraction:
    """The largest rho that is (epsilon, tail)-private; -1 where none is known."""
    try:
        return rho_for(epsilon, tail)
    except (BadParameter, OverflowError):
        return Fraction(-1)


def spent_of(total: Amount, cap: Amount, first: Amount | None) -> PrivacyLoss:
    """The smallest (epsilon, delta) that an account proves for all charges; for budgets with a delta.

    The sum of the deltas where the sums prove it, and else the whole delta of the budget.
    """
    shares, curve = delta_shares(cap, first), total.curved()
    proven = [loss_of(total)] if total.size < NO_EPSILON else []
    whole = cap.delta
    if curve.delta <= shares.events:
        if curve.gaussian is not None and shares.gaussian:
            proven.append(approximate(normal_epsilon(curve.gaussian, shares.gaussian), whole))
        if shares.rho:
            proven.append(approximate(epsilon_at(curve.rho, shares.rho), whole))
    if not proven:
        return approximate(NO_EPSILON, 1)
    return min(proven, key=lambda loss: loss.size)


def left_of(total: Amount, cap: Amount, first: Amount | None) -> PrivacyLoss:
    """An (epsilon, delta) that one more charge may have, whatever its curve; the whole cap before the first charge.

    Charges with a better curve than their epsilon shows, such as Gaussian noise, may cost more.
    """
    if cap.measure is not PrivacyMeasure.EPSILON or not cap.delta:
        size, delta = (max(Fraction(0), rest) for rest in (cap.size - total.size, cap.delta - total.delta))
        return loss_of(Amount(measure=cap.measure, size=size, delta=delta))
    if first is None:
        return loss_of(cap)
    shares, curve, epsilon = delta_shares(cap, first), total.curved(), cap.size
    room = [(Fraction(0), Fraction(0))]
    if shares.fit_sums(total, cap):
        room.append((cap.size - total.size, min(shares.sums + curve.delta, shares.events + shares.sums) - total.delta))
    rest = shares.events - curve.delta
    if curve.gaussian is not None and shares.gaussian:
        room.append((_down(float(pure_within(_squared(epsilon, shares.gaussian) - curve.gaussian))), rest))
    if shares.rho:
        room.append((_down(max(0.0, float(2 * (_rho(epsilon, shares.rho) - curve.rho))) ** 0.5), rest))
    best, rest = max((pair for pair in room if pair[1] >= 0), key=lambda pair: pair[0])
    return approximate(best, rest)


def part_of(cap: Amount, share: Fraction) -> tuple[PrivacyLoss, ...]:
    """What a share of a budget allows for one charge: charges whose shares add up to 1 fit, if nothing else is charged.

    For a budget with a delta, a charge in rho whose curve keeps to that of the first loss, or else to that of the
    second. The first is larger, but takes a curve with a Gaussian parameter.
    """
    whole = loss_of(cap)
    if cap.measure is PrivacyMeasure.RHO:
        return (concentrated(whole.size * share, whole.delta * share),)
    if not cap.delta:
        return (pure(whole.size * share),)
    shares = delta_shares(cap, None)
    delta = shares.events * share
    squared, rho = _squared(whole.size, shares.gaussian) * share, _rho(whole.size, shares.rho) * share
    if rho <= SLACK:
        raise BadParameter("the share of the budget is too small.", fix="Use a larger share.")
    normal = replace(gaussian_curve(squared - SLACK), delta=delta)
    return (
        *([replace(concentrated(normal.rho, delta), curve=normal)] if squared > SLACK else []),
        concentrated(rho - SLACK, delta),
    )


def _down(size: float) -> Fraction:
    """An epsilon below ``size``, which is rounded, so that a charge of it fits."""
    return Fraction(max(0, int(size * (1 - 1e-9) * 10**9) - 1), 10**9)
