"""Counts with differential privacy, under a budget for all queries together."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import model_validator

from sfumato.dp.loss import pure
from sfumato.dp.mechanism import Positive
from sfumato.dp.mechanisms.geometric import Geometric
from sfumato.errors import BadParameter, OverBudget
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.query.policy.base import ExactResponder, Policy, Responder
from sfumato.query.policy.subsets import Bits
from sfumato.rng import Rng
from sfumato.secret import SecretValue


class DifferentialPrivacy(Policy):
    """Counts with geometric noise of ``epsilon`` each until ``budget`` is spent; then every query is refused.

    The promise holds against any number of queries and any outside knowledge: by the budget's end nobody's bit can be
    guessed much better than without the answers. The same query again gets the same answer at no charge. Noise comes
    from the operating system, never from a seed.
    """

    fresh_noise = True
    examples = ({"epsilon": 0.1, "budget": 1},)
    spends_budget = True
    promise = (
        "Each answer is differentially private with epsilon {epsilon}; all answers together cost at most {budget}."
    )
    reference = "Dwork, McSherry, Nissim, Smith (2006), doi:10.1007/11681878_14"

    epsilon: Positive
    """Cost of one answer."""
    budget: Positive
    """What all answers together may cost."""

    @model_validator(mode="after")
    def _fits(self) -> DifferentialPrivacy:
        if self.epsilon > self.budget:
            raise ValueError("one answer costs more than the whole budget")
        return self

    def open(self, values: npt.ArrayLike, rng: Rng) -> Responder:
        return _Responder(np.asarray(values), self)


class _Responder(ExactResponder):
    def __init__(self, values: npt.NDArray[np.int64], policy: DifferentialPrivacy) -> None:
        if not np.isin(values, (0, 1)).all():
            raise BadParameter("this policy counts: every value is 0 or 1.")
        super().__init__(values)
        self._mechanism = Geometric.for_epsilon(policy.epsilon)
        self._cost = pure(policy.epsilon)
        self._ledger = Ledger.unkept()
        self._ledger.set_cap(pure(policy.budget), dataset="column")
        self._given: dict[bytes, float] = {}
        self._empty = False

    def ask(self, query: Bits) -> float | None:
        key = query.tobytes()
        if key not in self._given:
            if self._empty:
                return None
            try:
                receipt = self._ledger.charge(
                    Charge(loss=self._cost, unit="row", what=key.hex()), dataset="column", analyst="asker"
                )
            except OverBudget:
                self._empty = True
                return None
            true: SecretValue[Any] = SecretValue(np.rint(super().ask_all(query[None, :])).astype(np.int64))
            self._given[key] = float(self._mechanism.release(true, receipt=receipt)[0])
        return self._given[key]

    def ask_all(self, queries: Bits) -> npt.NDArray[np.float64]:
        answers = [self.ask(query) for query in queries]
        return np.array([np.nan if answer is None else answer for answer in answers], np.float64)
