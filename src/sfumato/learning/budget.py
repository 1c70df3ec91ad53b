"""Budget of one fit: check epsilon and delta, charge the ledger, and return noisy sums and the guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.dp.analytic_gaussian import normal_epsilon, squared_for
from sfumato.dp.contribution_bounds import Bounds, Enforced, Promised
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.receipt import Receipt
from sfumato.dp.spending import ReceiptExchange
from sfumato.dp.subsampled_gaussian import sampled_epsilon, sampled_squared_for, touched_rate
from sfumato.errors import BadParameter
from sfumato.learning.noisy_sums import NoisySums, gaussian_loss
from sfumato.ledger.charge import Charge, charge_run
from sfumato.ledger.ledger import Ledger
from sfumato.rationals import rational
from sfumato.release.guarantee import Guarantee

_LARGEST_EPSILON = 1000
_SLACK = Fraction(1, 10**9)
"""Part of the budget that is not used, so that shares given as floats may add up to a little more than 1."""

_PROOF = (
    "normal noise rounded to a grid (Balle, Wang 2018, Theorem 8; rounding is post-processing) on sums of clipped "
    "integers; adaptive composition in Gaussian differential privacy (Dong, Roth, Su 2022, doi:10.1111/rssb.12454)"
)
_SAMPLED_PROOF = (
    "normal noise rounded to a grid on sums of clipped integers over Poisson samples: Rényi differential privacy of "
    "the sampled Gaussian mechanism at integer orders (Mironov, Talwar, Zhang 2019, arXiv:1908.10530)"
)
_SEARCH_PROOF = (
    "private selection of the best of a random number of Gaussian private fits (Papernot, Steinke 2022, "
    "arXiv:2110.03620, Theorem 2, shape 0)"
)


def squared_budget(epsilon: Any, delta: Any) -> Fraction:
    """The squared parameter of Gaussian differential privacy that is (epsilon, delta)-private."""
    if epsilon is None or delta is None:
        raise BadParameter(
            "`epsilon` and `delta` are required: they have no default.",
            fix="For example epsilon=1, delta=1e-6; delta far below one over the number of people.",
        )
    size, chance = rational(epsilon), rational(delta)
    if not 0 < size <= _LARGEST_EPSILON:
        raise BadParameter("`epsilon` must lie above 0 and be at most 1000.", fix="For example epsilon=1.")
    if not 0 < chance < 1:
        raise BadParameter("`delta` must lie between 0 and 1.", fix="For example delta=1e-6.")
    return squared_for(size, chance)


@dataclass(frozen=True, kw_only=True)
class FitAccount:
    """Who is charged for a fit: the ledger, whose privacy, and what is public."""

    ledger: Ledger | str | Path | None
    dataset: str | None
    name: str
    unit: str
    max_rows: int
    """The largest number of rows of one person."""
    public: Mapping[str, object]
    """Parameters that are published as they are and must not have been derived from the data."""
    cut: Enforced | None = None
    """That the rows of every person were cut at ``max_rows``. Without it, the caller promises that nobody has more."""

    def __post_init__(self) -> None:
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int) or self.max_rows < 1:
            raise BadParameter("`max_rows`, the largest number of rows of one person, must be 1 or larger.")

    @property
    def bounds(self) -> Bounds | None:
        """How the rows of a person were bounded; None where every row is a unit."""
        if self.cut is not None or self.unit == "row":
            return self.cut
        return Promised(unit=self.unit, rows=self.max_rows, by="the caller")

    def charge(self, loss: PrivacyLoss, *, in_rho: PrivacyLoss | None = None) -> Receipt:
        """Charge a fit; ``in_rho`` is the loss for a ledger in rho."""
        run = Charge.of_run(
            loss, unit=self.unit, name=f"learn {self.name}", public=self.public, bounds=self.bounds, in_rho=in_rho
        )
        return charge_run(run, ledger=self.ledger, dataset=self.dataset)

    def guarantee(self, loss: PrivacyLoss, paid: Receipt, *, proof: str) -> Guarantee:
        """The guarantee of the fit."""
        stated = Guarantee(
            loss=loss, unit=self.unit, max_rows=self.max_rows, proof=proof, parameters={"public": sorted(self.public)}
        )
        return stated.under(self.bounds).charged(paid)


def charge_fit(
    account: FitAccount, *, epsilon: Any, delta: Any, paid: Receipt | None = None
) -> tuple[NoisySums, Guarantee]:
    """Charge a fit before its first look at the rows, and return its budget.

    A ledger in epsilon is charged epsilon and delta, one in rho is charged half the squared Gaussian parameter. A fit
    of a search is ``paid`` by the receipt of the search.
    """
    squared = squared_budget(epsilon, delta)
    size, chance = rational(epsilon), rational(delta)
    if paid is None:
        cost = replace(approximate(size, chance), curve=gaussian_curve(squared))
        paid = account.charge(cost, in_rho=gaussian_loss(squared))
    [receipt] = paid.split(gaussian_loss(squared))
    stated = replace(approximate(normal_epsilon(squared, chance), chance), curve=gaussian_curve(squared))
    guarantee = account.guarantee(stated, paid, proof=_PROOF)
    return NoisySums(receipt, squared * (1 - _SLACK), rows=account.max_rows), guarantee


def charge_sampled_fit(
    account: FitAccount, *, epsilon: Any, delta: Any, steps: int, rate: Fraction
) -> tuple[NoisySums, Guarantee]:
    """Charge a fit whose ``steps`` measurements are each made on a Poisson sample of the rows.

    The noise of a step hides a row in the sample less than the cost says; what the sample adds is accounted for here,
    and the receipt of the cost is exchanged for one of that noise.
    """
    squared_budget(epsilon, delta)
    size, chance = rational(epsilon), rational(delta)
    touched = touched_rate(rate, account.max_rows)
    squared = sampled_squared_for(size, chance, rate=touched, steps=steps)
    paid = account.charge(approximate(size, chance))
    stated = approximate(sampled_epsilon(squared, rate=touched, steps=steps, delta=chance), chance)
    exchange = ReceiptExchange(
        theorem=_SAMPLED_PROOF, rule="A1", facts={"rate": rate, "steps": steps, "squared_mu": squared}
    )
    [receipt] = paid.exchanged(gaussian_loss(squared * steps), exchange=exchange)
    sums = NoisySums(receipt, squared * steps * (1 - _SLACK), rows=account.max_rows)
    return sums, account.guarantee(stated, paid, proof=_SAMPLED_PROOF)


def charge_search(
    account: FitAccount, *, epsilon: Any, delta: Any, fit: Fraction, score: Fraction, fits: Callable[[], int]
) -> tuple[Iterator[tuple[Receipt, NoisySums]], Guarantee]:
    """Charge a search for hyper-parameters as a whole, and return what each of its fits has for itself and its score.

    ``fit`` and ``score`` are squared Gaussian parameters.
    """
    cost = approximate(rational(epsilon), rational(delta))
    paid = account.charge(cost)
    losses = [gaussian_loss(fit), gaussian_loss(score)] * fits()  # drawn after the charge
    receipts = iter(paid.exchanged(*losses, exchange=ReceiptExchange(theorem=_SEARCH_PROOF)))
    sums = score * (1 - _SLACK)
    return (
        (one, NoisySums(other, sums, rows=account.max_rows)) for one, other in zip(receipts, receipts, strict=True)
    ), account.guarantee(cost, paid, proof=_SEARCH_PROOF)
