"""Budget of one fit: check epsilon and delta, charge the ledger, and return noisy sums and the privacy statement."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.dp.analytic_gaussian import normal_epsilon, squared_for
from sfumato.dp.curve import gaussian_curve
from sfumato.dp.ledger import Ledger
from sfumato.dp.loss import PrivacyMeasure, approximate
from sfumato.errors import BadParameter
from sfumato.learning.noisy_sums import NoisySums, gaussian_loss
from sfumato.learning.statement import PrivacyStatement
from sfumato.rationals import rational

__all__ = ["charge_fit", "squared_budget"]

_LARGEST_EPSILON = 1000
_SLACK = Fraction(1, 10**9)
"""Part of the budget that is not used, so that shares given as floats may add up to a little more than 1."""


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
    public: dict[str, Any],
    name: str,
) -> tuple[NoisySums, PrivacyStatement]:
    """Charge a fit before its first look at the rows, and return its budget.

    A ledger in epsilon is charged epsilon and delta, one in rho is charged half the squared Gaussian parameter.
    """
    squared = squared_budget(epsilon, delta)
    if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
        raise BadParameter("`max_rows`, the largest number of rows of one person, must be 1 or larger.")
    if (ledger is None) != (dataset is None):
        raise BadParameter("`ledger` and `dataset` belong together: name the data set that is charged.")
    size, chance = rational(epsilon), rational(delta)
    cost = replace(approximate(size, chance), curve=gaussian_curve(squared))
    account = dataset or "table"
    if ledger is None:
        book = Ledger.open(":memory:")
        book.set_cap(cost + cost, dataset=account)  # of this fit alone; twice the cost, because caps are rounded down
    else:
        book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
        cap = book.balance(dataset=account).cap
        if cap is not None and cap.measure is PrivacyMeasure.RHO:
            cost = gaussian_loss(squared)
    text = json.dumps({"estimator": name, **public}, sort_keys=True, default=str)
    query = f"learn {name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
    paid = book.reserve(cost, dataset=account, analyst="owner", query=query, text=text)
    [receipt] = paid.split(gaussian_loss(squared))
    statement = PrivacyStatement(
        epsilon=float(normal_epsilon(squared, chance)),
        delta=float(chance),
        mu=float(squared) ** 0.5,
        max_rows=max_rows,
        public=tuple(sorted(public)),
        entry=paid.entry if ledger is not None else None,
        dataset=dataset,
    )
    return NoisySums(receipt, squared * (1 - _SLACK), rows=max_rows), statement
