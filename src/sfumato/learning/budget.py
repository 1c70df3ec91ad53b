"""Budget of one fit: check epsilon and delta, charge the ledger, and return noisy sums and the guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.dp.analytic_gaussian import normal_epsilon, squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.loss import PrivacyLoss, approximate
from sfumato.dp.receipt import Receipt
from sfumato.dp.subsampled_gaussian import sampled_epsilon, sampled_squared_for, touched_rate
from sfumato.errors import BadParameter
from sfumato.learning.noisy_sums import NoisySums, gaussian_loss
from sfumato.ledger.ledger import Ledger
from sfumato.ledger.run_account import charge_run
from sfumato.rationals import rational
from sfumato.release.guarantee import Guarantee

__all__ = ["charge_fit", "charge_sampled_fit", "charge_search", "squared_budget"]

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


def charge_fit(
    *,
    epsilon: Any,
    delta: Any,
    ledger: Ledger | str | Path | None,
    dataset: str | None,
    max_rows: int,
    unit: str,
    public: dict[str, Any],
    name: str,
    paid: Receipt | None = None,
) -> tuple[NoisySums, Guarantee]:
    """Charge a fit before its first look at the rows, and return its budget.

    A ledger in epsilon is charged epsilon and delta, one in rho is charged half the squared Gaussian parameter. A fit
    of a search is ``paid`` by the receipt of the search.
    """
    squared = squared_budget(epsilon, delta)
    size, chance = rational(epsilon), rational(delta)
    cost = replace(approximate(size, chance), curve=gaussian_curve(squared))
    if paid is None:
        paid = _reserve(
            cost, in_rho=gaussian_loss(squared), ledger=ledger, dataset=dataset, max_rows=max_rows, unit=unit,
            public=public, name=name,
        )  # fmt: skip
    [receipt] = paid.split(gaussian_loss(squared))
    stated = replace(approximate(normal_epsilon(squared, chance), chance), curve=gaussian_curve(squared))
    guarantee = _guarantee(stated, paid, max_rows=max_rows, unit=unit, public=public, proof=_PROOF)
    return NoisySums(receipt, squared * (1 - _SLACK), rows=max_rows), guarantee


def charge_sampled_fit(
    *, epsilon: Any, delta: Any, steps: int, rate: Fraction, max_rows: int, unit: str, ledger: Any,
    dataset: str | None, public: dict[str, Any], name: str,
) -> tuple[NoisySums, Guarantee]:  # fmt: skip
    """Charge a fit whose ``steps`` measurements are each made on a Poisson sample of the rows.

    The noise of a step hides a row in the sample less than the cost says; what the sample adds is accounted for here,
    and the receipt of the cost is exchanged for one of that noise.
    """
    squared_budget(epsilon, delta)
    size, chance = rational(epsilon), rational(delta)
    _check_rows(max_rows)
    touched = touched_rate(rate, max_rows)
    squared = sampled_squared_for(size, chance, rate=touched, steps=steps)
    paid, guarantee = _charge_approximate(
        size, chance, ledger=ledger, dataset=dataset, max_rows=max_rows, unit=unit, public=public, name=name,
        epsilon=sampled_epsilon(squared, rate=touched, steps=steps, delta=chance), proof=_SAMPLED_PROOF,
    )  # fmt: skip
    [receipt] = paid.exchanged(gaussian_loss(squared * steps), theorem=_SAMPLED_PROOF)
    return NoisySums(receipt, squared * steps * (1 - _SLACK), rows=max_rows), guarantee


def charge_search(
    *, epsilon: Any, delta: Any, max_rows: int, unit: str, ledger: Any, dataset: str | None, public: dict[str, Any],
    name: str, fit: Fraction, score: Fraction, fits: Callable[[], int],
) -> tuple[Iterator[tuple[Receipt, NoisySums]], Guarantee]:  # fmt: skip
    """Charge a search for hyper-parameters as a whole, and return what each of its fits has for itself and its score.

    ``fit`` and ``score`` are squared Gaussian parameters.
    """
    size, chance = rational(epsilon), rational(delta)
    paid, guarantee = _charge_approximate(
        size, chance, ledger=ledger, dataset=dataset, max_rows=max_rows, unit=unit, public=public, name=name,
        epsilon=size, proof=_SEARCH_PROOF,
    )  # fmt: skip
    losses = [gaussian_loss(fit), gaussian_loss(score)] * fits()  # drawn after the charge
    receipts = iter(paid.exchanged(*losses, theorem=_SEARCH_PROOF))
    sums = score * (1 - _SLACK)
    return (
        (one, NoisySums(other, sums, rows=max_rows)) for one, other in zip(receipts, receipts, strict=True)
    ), guarantee


def _charge_approximate(
    size: Fraction, chance: Fraction, *, epsilon: Fraction, proof: str, max_rows: int, unit: str, ledger: Any,
    dataset: str | None, public: dict[str, Any], name: str,
) -> tuple[Receipt, Guarantee]:  # fmt: skip
    """Charge a loss that is known as epsilon and delta alone."""
    cost = approximate(size, chance)
    paid = _reserve(
        cost, in_rho=cost, ledger=ledger, dataset=dataset, max_rows=max_rows, unit=unit, public=public, name=name
    )
    stated = approximate(epsilon, chance)
    return paid, _guarantee(stated, paid, max_rows=max_rows, unit=unit, public=public, proof=proof)


def _guarantee(
    loss: PrivacyLoss, paid: Receipt, *, max_rows: int, unit: str, public: dict[str, Any], proof: str
) -> Guarantee:
    """The guarantee of a fit; ``public`` are parameters that must not have been derived from the data."""
    return Guarantee(
        loss=loss, unit=unit, max_rows=max_rows, proof=proof, parameters={"public": sorted(public)}
    ).charged(paid)


def _check_rows(max_rows: int) -> None:
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        raise BadParameter("`max_rows`, the largest number of rows of one person, must be 1 or larger.")


def _reserve(
    cost: PrivacyLoss, *, in_rho: PrivacyLoss, ledger: Ledger | str | Path | None, dataset: str | None, max_rows: int,
    unit: str, public: dict[str, Any], name: str,
) -> Receipt:  # fmt: skip
    """Reserve a cost in the ledger; ``in_rho`` is the cost for a ledger in rho."""
    _check_rows(max_rows)
    return charge_run(
        cost, in_rho=in_rho, ledger=ledger, dataset=dataset, unit=unit, name=f"learn {name}", public=public
    )
