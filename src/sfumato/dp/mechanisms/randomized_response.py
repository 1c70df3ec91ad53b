"""Randomized response: each person's answer is randomized before it is collected."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.dp.loss import PrivacyLoss, pure
from sfumato.dp.mechanism import Chance, ContributionBounds, Mechanism, as_integers, sensitivity_of, tail
from sfumato.dp.os_random import below
from sfumato.dp.rational_bounds import exp_bracket, ln_up
from sfumato.dp.receipt import Receipt
from sfumato.dp.sampler import bernoulli
from sfumato.errors import BadParameter
from sfumato.rationals import Number, rational
from sfumato.secret import SecretValue


class RandomizedResponse(Mechanism):
    """Report the true category with probability ``honest``, otherwise a uniformly random one (the true one included).

    With two categories and ``honest`` 1/2 this is the two-coin protocol, whose loss is ln 3. The input is one category
    number per person; ``sensitivity`` is the number of answers of one person. :meth:`estimate` gives unbiased shares.
    ``error`` bounds the estimated *share* of each category (Hoeffding) for ``people`` answers and ``outputs``
    categories.

    >>> from sfumato.dp import SecretValue, pure
    >>> from sfumato.ledger import Charge, Ledger
    >>> ledger = Ledger.unkept()
    >>> _ = ledger.set_cap(pure(5), dataset="poll")
    >>> poll = RandomizedResponse.for_epsilon(2, categories=2)
    >>> charge = Charge(loss=poll.loss(), unit="row", what="yes or no")
    >>> receipt = ledger.charge(charge, dataset="poll", analyst="ana")
    >>> answers = poll.release(SecretValue([0] * 5000 + [1] * 15000), receipt=receipt)
    >>> bool(abs(poll.estimate(answers)[1] - 0.75) < poll.error(confidence="0.999999", people=20000))
    True

    >>> round(float(RandomizedResponse(categories=2, honest="1/2").loss().size), 10)
    1.0986122887
    """

    examples = ({"categories": 2, "honest": "1/2"}, {"categories": 5, "honest": 0.3})
    reference = "Warner (1965), doi:10.1080/01621459.1965.10480775; k-ary: Kairouz, Bonawitz, Ramage (2016)"
    proof = "Dwork, Roth 2014, Claim 3.5 (two coins), doi:10.1561/0400000042; ratio of the k-ary response matrix"
    specimen = np.array([0, 1, 1, 0])

    categories: Annotated[int, Field(ge=2)]
    """Number of categories; they are numbered from 0."""
    honest: Chance
    """Probability of reporting the true category before the random one is considered."""

    @classmethod
    def for_epsilon(cls, epsilon: Number, *, categories: int) -> Self:
        """The largest ``honest`` whose loss does not exceed ``epsilon``."""
        grown = exp_bracket(rational(epsilon), 30)[0] - 1
        honest = grown / (grown + categories)
        return cls(categories=categories, honest=Fraction(int(honest * (1 << 62)), 1 << 62))

    def loss(self, sensitivity: Number = 1) -> PrivacyLoss:
        """ln(1 + honest·categories / (1 - honest)) per answer, rounded up."""
        if self.honest == 1:
            raise BadParameter("`honest` must be below 1: true answers are not private at any epsilon.")
        return pure(sensitivity_of(sensitivity) * ln_up(1 + self.honest * self.categories / (1 - self.honest)))

    def loss_from_bounds(self, bounds: ContributionBounds) -> PrivacyLoss:
        # The response matrix has one probability on its diagonal and another one everywhere else.
        other = (1 - self.honest) / self.categories
        if other == 0:
            raise BadParameter("`honest` must be below 1: true answers are not private at any epsilon.")
        return pure(bounds.groups * bounds.change * ln_up((self.honest + other) / other))

    def error(self, *, confidence: Number, outputs: int = 1, people: int = 1) -> float:
        """Bound on abs(estimated share - true share) for ``people`` answers."""
        if self.honest == 0:
            return float("inf")
        return float(np.sqrt(float(ln_up(2 / tail(confidence, outputs))) / (2 * people)) / float(self.honest))

    def release(self, value: SecretValue[Any], *, receipt: Receipt, sensitivity: Number = 1) -> Any:
        codes = as_integers(self._open(value, receipt, sensitivity))
        if codes.size and not (codes.min() >= 0 and codes.max() < self.categories):
            raise BadParameter("category numbers must lie in 0 .. categories - 1.")
        honest = bernoulli(self.honest, codes.size).reshape(codes.shape)
        return np.where(honest, codes, below(self.categories, codes.size).reshape(codes.shape))

    def estimate(self, answers: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Unbiased shares of the categories from the randomized answers (post-processing)."""
        codes = np.asarray(answers)
        seen = np.bincount(codes.ravel(), minlength=self.categories) / max(1, codes.size)
        return np.asarray((seen - float((1 - self.honest) / self.categories)) / float(self.honest))
