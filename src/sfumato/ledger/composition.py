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

The owner may also choose one account with the cap (:class:`Composition`), before anything is charged: then all of delta
but a reserve for events is the tail of that account. The other sets of transcripts are empty, and the theorem holds
with their shares at 0. Of pure questions of epsilon 0.01, a cap of (1, 1e-6) holds 410 by default and 487 under
``rho``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from sfumato.dp.analytic_gaussian import normal_epsilon, pure_within, squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, PrivacyMeasure, approximate, concentrated, pure
from sfumato.dp.zcdp import epsilon_at, rho_for
from sfumato.errors import BadParameter
from sfumato.ledger.exact_budget import NO_EPSILON, SLACK, Amount
from sfumato.rationals import Number, rational


class Composition(StrEnum):
    """The accounts that a budget in epsilon and delta is kept in; the owner chooses before the first charge."""

    ALL = "all"
    """All three, which share delta: any one of them may hold."""
    SUMS = "sums"
    GAUSSIAN = "gaussian"
    RHO = "rho"


@dataclass(frozen=True, kw_only=True)
class BudgetCap:
    """A budget, and which accounts keep it.

    >>> BudgetCap(loss=approximate(1, "1e-6"), composition=Composition.RHO)
    BudgetCap(loss=Loss(epsilon=1, delta=1/1000000), composition=<Composition.RHO: 'rho'>, reserved=Fraction(0, 1))
    """

    loss: PrivacyLoss
    composition: Composition = Composition.ALL
    reserved: Fraction = field(default=Fraction(0))
    """Share of delta for charges with a delta of their own, such as private keys, under one account of curves."""

    @classmethod
    def of(
        cls, loss: PrivacyLoss, *, composition: Composition | str = Composition.ALL, reserve: Number = 0
    ) -> BudgetCap:
        """A cap as its owner states it: ``reserve`` is a part of delta, in the units of delta."""
        chosen, kept = Composition(composition), rational(reserve)
        if chosen is not Composition.ALL and (loss.measure is not PrivacyMeasure.EPSILON or not loss.delta):
            raise BadParameter(
                "Only a budget in epsilon with a delta has a choice of composition.",
                fix="Leave the composition out: budgets in epsilon alone and in rho add up their own measure.",
            )
        if kept and chosen not in (Composition.GAUSSIAN, Composition.RHO):
            raise BadParameter("A part of delta is reserved under `gaussian` or `rho` only.")
        if not 0 <= kept <= loss.delta:
            raise BadParameter("The reserved part lies between 0 and delta.")
        return cls(loss=loss, composition=chosen, reserved=kept / loss.delta if kept else Fraction(0))

    @property
    def filtered(self) -> bool:
        """Whether the budget has a delta to divide among accounts."""
        return self.loss.measure is PrivacyMeasure.EPSILON and self.loss.delta > 0


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

    def fit_sums(self, total: Amount, cap: PrivacyLoss) -> bool:
        """Whether the sums of the charges keep to a cap."""
        if not self.sums or total.epsilon > cap.size or total.delta > self.events + self.sums:
            return False
        return total.delta - total.curve.delta <= self.sums

    def to_dict(self) -> dict[str, str]:
        """As plain data with exact fractions."""
        return {name: str(share) for name, share in vars(self).items()}

    def __str__(self) -> str:
        uses = {
            "for costs that have a δ, such as private keys": self.events,
            "for the δ at which Gaussian noise is stated as an ε": self.sums,
            "for the Gaussian account": self.gaussian,
            "for the account in ρ": self.rho,
        }
        return ", ".join(f"{float(share):.3g} {use}" for use, share in uses.items() if share)


def decided(cap: BudgetCap, first: Amount | None) -> BudgetCap:
    """The cap with the accounts that the first charge decided on, if it did not fit the usual division."""
    if not cap.filtered or cap.composition is not Composition.ALL or first is None:
        return cap
    if _composed(first, cap.loss, delta_shares(cap, None)):
        return cap
    used = min(first.curve.delta / cap.loss.delta, Fraction(1))
    alone = (
        replace(cap, composition=Composition.SUMS),
        replace(cap, composition=Composition.GAUSSIAN, reserved=used),
        replace(cap, composition=Composition.RHO, reserved=used),
    )
    return next((one for one in alone if _composed(first, cap.loss, delta_shares(one, first))), cap)


def kept_composition(stated: BudgetCap, old: BudgetCap) -> BudgetCap:
    """A new cap of an account that was charged: its delta stays divided as it was, whatever was answered since."""
    if stated.composition is not Composition.ALL and (stated.composition, stated.reserved) != (
        old.composition,
        old.reserved,
    ):
        raise BadParameter(
            f"The delta of this budget is divided for `{old.composition}` since its first charge.",
            fix="Leave the composition out: a division that is chosen after answers could depend on them.",
        )
    return BudgetCap(loss=stated.loss, composition=old.composition, reserved=old.reserved) if old.filtered else stated


def delta_shares(cap: BudgetCap, first: Amount | None) -> DeltaShares:
    """The division of the budget's delta, given the first charge."""
    cap = decided(cap, first) if first is not None else cap
    delta = cap.loss.delta
    used = delta * cap.reserved
    match cap.composition:
        case Composition.ALL:
            return DeltaShares(events=delta * 3 / 8, sums=delta / 8, gaussian=delta * 3 / 8, rho=delta / 8)
        case Composition.SUMS:
            return DeltaShares(sums=delta)
        case Composition.GAUSSIAN:
            return DeltaShares(events=used, gaussian=delta - used)
        case Composition.RHO:
            return DeltaShares(events=used, rho=delta - used)


def within(total: Amount, cap: BudgetCap, first: Amount | None) -> bool:
    """Whether all charges together keep to a cap; ``first`` is the first of them.

    Charges in any measure have a rho, so a cap in rho holds them all. A cap in epsilon without a delta holds charges
    that have an epsilon.
    """
    if cap.filtered:
        return _composed(total, cap.loss, delta_shares(cap, first))
    if cap.loss.measure is PrivacyMeasure.RHO:
        return total.curve.rho <= cap.loss.size and total.curve.delta <= cap.loss.delta
    return total.epsilon <= cap.loss.size and total.delta <= cap.loss.delta


def _composed(total: Amount, cap: PrivacyLoss, shares: DeltaShares) -> bool:
    if shares.fit_sums(total, cap):
        return True
    curve = total.curve
    if curve.delta > shares.events:
        return False
    if curve.gaussian is not None and curve.gaussian <= _squared(cap.size, shares.gaussian):
        return True
    return curve.rho <= _rho(cap.size, shares.rho)


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


def spent_of(total: Amount, cap: BudgetCap, first: Amount | None) -> PrivacyLoss:
    """The smallest loss in the cap's measure that an account proves for all charges.

    For a budget with a delta: the sum of the deltas where the sums prove it, and else the whole delta of the budget.
    """
    if not cap.filtered:
        return total.loss(cap.loss.measure)
    shares, curve, whole = delta_shares(cap, first), total.curve, cap.loss.delta
    proven = [total.loss()] if total.epsilon < NO_EPSILON else []
    if curve.delta <= shares.events:
        if curve.gaussian is not None and shares.gaussian:
            proven.append(approximate(normal_epsilon(curve.gaussian, shares.gaussian), whole))
        if shares.rho:
            proven.append(approximate(epsilon_at(curve.rho, shares.rho), whole))
    if not proven:
        return approximate(NO_EPSILON, 1)
    return min(proven, key=lambda loss: loss.size)


def left_of(total: Amount, cap: BudgetCap, first: Amount | None) -> PrivacyLoss:
    """An (epsilon, delta) that one more charge may have, whatever its curve; the whole cap before the first charge.

    Charges with a better curve than their epsilon shows, such as Gaussian noise, may cost more.
    """
    whole = cap.loss
    if not cap.filtered:
        in_rho = whole.measure is PrivacyMeasure.RHO
        size, delta = (total.curve.rho, total.curve.delta) if in_rho else (total.epsilon, total.delta)
        return replace(whole, size=max(Fraction(0), whole.size - size), delta=max(Fraction(0), whole.delta - delta))
    if first is None and cap.composition is Composition.ALL:
        return whole
    shares, curve, epsilon = delta_shares(cap, first), total.curve, whole.size
    room = [(Fraction(0), Fraction(0))]
    if shares.fit_sums(total, whole):
        room.append(
            (whole.size - total.epsilon, min(shares.sums + curve.delta, shares.events + shares.sums) - total.delta)
        )
    rest = shares.events - curve.delta
    if curve.gaussian is not None and shares.gaussian:
        room.append((_down(float(pure_within(_squared(epsilon, shares.gaussian) - curve.gaussian))), rest))
    if shares.rho:
        room.append((_down(max(0.0, float(2 * (_rho(epsilon, shares.rho) - curve.rho))) ** 0.5), rest))
    best, rest = max((pair for pair in room if pair[1] >= 0), key=lambda pair: pair[0])
    return approximate(best, rest)


def part_of(cap: BudgetCap, share: Fraction) -> tuple[PrivacyLoss, ...]:
    """What a share of a budget allows for one charge: charges whose shares add up to 1 fit, if nothing else is charged.

    For a budget with a delta, a charge in rho whose curve keeps to that of the first loss, or else to that of the
    second. The first is larger, but takes a curve with a Gaussian parameter.
    """
    whole = cap.loss
    if whole.measure is PrivacyMeasure.RHO:
        return (concentrated(whole.size * share, whole.delta * share),)
    if not whole.delta:
        return (pure(whole.size * share),)
    if cap.composition is Composition.SUMS:
        return (approximate(whole.size * share, whole.delta * share),)
    shares = delta_shares(cap, None)
    delta = shares.events * share
    squared, rho = _squared(whole.size, shares.gaussian) * share, _rho(whole.size, shares.rho) * share
    if max(rho, squared / 2) <= SLACK:
        raise BadParameter("the share of the budget is too small.", fix="Use a larger share.")
    normal = replace(gaussian_curve(max(Fraction(0), squared - SLACK)), delta=delta)
    return (
        *([replace(concentrated(normal.rho, delta), curve=normal)] if squared > SLACK else []),
        *([concentrated(rho - SLACK, delta)] if rho > SLACK else []),
    )


def smallest_part(caps: Sequence[BudgetCap], share: Fraction) -> tuple[PrivacyLoss, ...]:
    """What a share of several budgets allows for one charge that has to fit them all."""
    parts = [part_of(cap, share) for cap in caps]
    least = min(parts, key=lambda losses: losses[-1].composable().rho)
    sums = [part[0] for part in parts if part[0].pure]
    if not sums:
        return least
    # A cap in epsilon alone holds no charge in rho, so all caps are kept by an epsilon: epsilon²/2 is a rho.
    most = [] if least[0].pure else [pure(_down((2 * float(least[-1].composable().rho)) ** 0.5))]
    return (min((*sums, *most), key=lambda loss: loss.size),)


def _down(size: float) -> Fraction:
    """An epsilon below ``size``, which is rounded, so that a charge of it fits."""
    return Fraction(max(0, int(size * (1 - 1e-9) * 10**9) - 1), 10**9)
