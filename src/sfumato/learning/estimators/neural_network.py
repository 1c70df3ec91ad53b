"""Neural network with differential privacy: one hidden layer, fitted by DP-SGD."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from sfumato.arrays import Array, Floats
from sfumato.dp.os_random import words
from sfumato.dp.sampler import bernoulli
from sfumato.errors import BadParameter
from sfumato.learning.base import ScoringClassifier
from sfumato.learning.budget import charge_sampled_fit
from sfumato.learning.noisy_sums import FEATURE_STEPS, WEIGHT_STEPS, NoisySums, exact_product
from sfumato.rationals import rational

_GRID = FEATURE_STEPS * WEIGHT_STEPS
_DECAY, _SQUARED_DECAY = 0.9, 0.99
"""Memory of the mean and of the mean square of gradients."""


@dataclass(kw_only=True, eq=False, repr=False)
class NeuralNetwork(ClassifierMixin, ScoringClassifier):  # type: ignore[misc]
    """Neural network with one hidden layer and differential privacy, fitted by DP-SGD.

    Every step draws a Poisson sample of the rows, clips the gradient of each row to an L2 norm of ``clip``, rounds it
    to whole grid steps, and adds normal noise to the sum. Steps are scaled as in Adam, which is post-processing and
    needs no number of rows. The model is the average of the last quarter of the iterates. It runs on NumPy, on the CPU.

    Parameters are those of :class:`~sfumato.learning.LogisticRegression` except for ``steps``, and:

    Parameters
    ----------
    hidden
        Number of hidden units.
    steps
        Number of noisy gradients.
    rate
        Probability with which a row is in the sample of a step.
    clip
        The largest L2 norm of the gradient of one row, at most 1.
    learning_rate
        Size of a step.

    Attributes
    ----------
    layers_
        Weights of the hidden layer (scaled features and a constant) and of the output layer (hidden units and a
        constant).

    References
    ----------
    Abadi et al. (2016). Deep learning with differential privacy. doi:10.1145/2976749.2978318. Mironov, Talwar, Zhang
    (2019). Rényi differential privacy of the sampled Gaussian mechanism. arXiv:1908.10530
    """

    gaussian = False

    hidden: int = 16
    steps: int = 300
    rate: float = 0.05
    clip: float = 1.0
    learning_rate: float = 0.03

    def fit(self, X: Any, y: Any) -> NeuralNetwork:  # noqa: N803
        """Charge the budget and fit the model."""
        self._check_budget()
        for name in ("hidden", "steps"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise BadParameter(f"`{name}` must be a whole number, 1 or larger.")
        for name in ("rate", "clip"):
            if not 0 < rational(getattr(self, name)) <= 1:
                raise BadParameter(f"`{name}` must lie above 0 and be at most 1.")
        if not rational(self.learning_rate) > 0:
            raise BadParameter("`learning_rate` must be above 0.")
        rows, y = self._checked_rows(X, y, reset=True)
        codes = self._codes(y)
        design = self._domain().in_steps(rows, constant=True)
        two = len(self.classes_) == 2
        targets = codes[:, None].astype(np.float64) if two else np.eye(len(self.classes_))[codes]
        sums = self._charge()
        self.layers_ = list(
            _descend(
                design, targets, hidden=self.hidden, steps=self.steps, rate=rational(self.rate),
                clip=float(self.clip), learning_rate=float(self.learning_rate), sums=sums,
            )
        )  # fmt: skip
        return self

    def _charge(self) -> NoisySums:
        sums, self.privacy_ = charge_sampled_fit(
            self._account(), epsilon=self.epsilon, delta=self.delta, steps=self.steps, rate=rational(self.rate)
        )
        return sums

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """The score of every row: of the second class, or of each of three and more."""
        rows = self._fitted_rows(X)
        inputs = np.column_stack([self._domain().scaled(rows), np.ones(len(rows))])
        first, last = (np.asarray(layer) for layer in self.layers_)
        scores = np.tanh(inputs @ first) @ last[:-1] + last[-1]
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)


def _descend(
    design: Floats, targets: Floats, *, hidden: int, steps: int, rate: Fraction, clip: float, learning_rate: float,
    sums: NoisySums,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Weights of the two layers. The number of rows is used by nothing but the sampling."""
    start = np.random.default_rng(int(words(1)[0]))
    width, outputs = design.shape[1], targets.shape[1]
    first, last = start.normal(0, width**-0.5, (width, hidden)), np.zeros((hidden + 1, outputs))
    weights = np.concatenate([first.ravel(), last.ravel()])
    mean, square, total = np.zeros_like(weights), np.zeros_like(weights), np.zeros_like(weights)
    distance, kept = int((clip * _GRID) ** 2), steps - 3 * steps // 4
    for step in range(1, steps + 1):
        first, last = weights[: first.size].reshape(first.shape), weights[first.size :].reshape(last.shape)
        chosen = bernoulli(rate, len(design))
        exact = clipped_gradients(design[chosen], targets[chosen], first, last, clip=clip)
        noisy = sums.measure(exact, distance=distance, share=Fraction(1, steps)) / _GRID
        mean = _DECAY * mean + (1 - _DECAY) * noisy
        square = _SQUARED_DECAY * square + (1 - _SQUARED_DECAY) * noisy**2
        scale = np.sqrt(square / (1 - _SQUARED_DECAY**step)) + 1e-12
        weights = weights - learning_rate * mean / (1 - _DECAY**step) / scale
        if step > steps - kept:
            total = total + weights / kept
    return total[: first.size].reshape(first.shape), total[first.size :].reshape(last.shape)


def clipped_gradients(design: Floats, targets: Floats, first: Floats, last: Floats, *, clip: float) -> Array:
    """The sum of the rows' gradients, each clipped and rounded towards zero, in whole grid steps.

    The gradient of a layer is the outer product of its inputs and errors, so that its norm is the product of theirs. A
    row whose rounded gradient is longer than ``clip``, by the rounding of floats, counts zero.
    """
    inputs = design / FEATURE_STEPS
    units = np.tanh(inputs @ first)
    scores = units @ last[:-1] + last[-1]
    errors = (expit(scores) if targets.shape[1] == 1 else softmax(scores, axis=1)) - targets
    inner = (errors @ last[:-1].T) * (1 - units**2)
    grown = np.column_stack([units, np.ones(len(units))])
    norm = np.sqrt(_product_norm(grown, errors) + _product_norm(inputs, inner))
    shrink = WEIGHT_STEPS * np.minimum(1, clip * (1 - 1e-9) / np.maximum(norm, 1e-300))[:, None]
    outer, inner = (np.trunc(np.nan_to_num(part * shrink)) for part in (errors, inner))
    steps = np.trunc(grown * FEATURE_STEPS)
    long = _product_norm(steps, outer) + _product_norm(design, inner) > (clip * _GRID) ** 2 * (1 - 1e-12)
    outer[long], inner[long] = 0, 0
    return np.concatenate([exact_product(design, inner).ravel(), exact_product(steps, outer).ravel()])


def _product_norm(left: Floats, right: Floats) -> Floats:
    """Squared norms of the outer products of rows."""
    return np.asarray((left * left).sum(axis=1) * (right * right).sum(axis=1))
