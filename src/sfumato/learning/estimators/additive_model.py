"""Generalized additive model with differential privacy, fitted by cyclic gradient boosting on noisy histograms."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin

from sfumato.arrays import Floats, Ints
from sfumato.learning.base import ScoringClassifier
from sfumato.learning.binning import BinnedClassifier, BinnedFeatures
from sfumato.learning.noisy_sums import WEIGHT_STEPS, NoisySums
from sfumato.learning.residuals import residuals

_BINS_SHARE = Fraction(3, 20)
"""Share of the budget for the histograms of the features."""
_CURVATURE = 0.12
"""Typical p·(1 - p), at most 1/4: the curvature of a bin is taken as this times its noisy count."""
_DAMPING = 3.0
"""Curvature added to every bin, in standard deviations of the noise of its gradient."""
_RATE = 0.4


@dataclass(kw_only=True, eq=False, repr=False)
class AdditiveModel(ClassifierMixin, ScoringClassifier, BinnedClassifier):  # type: ignore[misc]
    """Generalized additive model of binned features with differential privacy (an explainable boosting machine).

    The score of a row is a sum of one shape function per feature, so that a prediction can be read off ``terms_``. A
    shape function is constant on bins; there are no trees and no interactions between features. Bins are learned from
    noisy histograms (15 % of the budget). The features take turns for ``epochs`` rounds: the sums of the residuals in
    all bins of a feature are measured with noise, and its shape function is moved by a damped Newton step. A row is in
    one bin of a feature, so a measurement has sensitivity 1 whatever the number of bins.

    Parameters are those of :class:`~sfumato.learning.LogisticRegression`, and:

    Parameters
    ----------
    epochs
        Number of rounds over all features.
    bins
        The largest number of bins of a number.

    Attributes
    ----------
    terms_
        The shape functions: per feature, one line per bin and one column per output.
    bins_
        Per feature, the bin of every fine cell.
    intercept_
        The score where all shape functions are 0.
    """

    epochs: int = 10
    bins: int = 32

    def fit(self, X: Any, y: Any) -> AdditiveModel:  # noqa: N803
        """Charge the budget and fit the model."""
        start = self._fit_bins(X, y, share=_BINS_SHARE, most={"epochs": None, "bins": None})
        codes, binned, two = start.codes, start.binned, len(self.classes_) == 2
        targets = codes[:, None].astype(np.float64) if two else np.eye(len(self.classes_))[codes]
        terms = _boost(start.lines, targets, binned, epochs=self.epochs, sums=start.sums)
        # Shape functions have mean 0 over the noisy counts; what is subtracted is the intercept.
        means = [np.average(t, axis=0, weights=np.maximum(c, 1)) for t, c in zip(terms, binned.counts, strict=True)]
        self.terms_ = [term - mean for term, mean in zip(terms, means, strict=True)]
        self.intercept_ = np.sum(means, axis=0)
        return self

    def decision_function(self, X: object) -> Floats:  # noqa: N803
        """The score of every row: of the second class, or of each of three and more."""
        codes = self._lines(X)
        scores = self.intercept_ + sum(np.asarray(term)[line] for term, line in zip(self.terms_, codes, strict=True))
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)


def _boost(codes: Ints, targets: Floats, binned: BinnedFeatures, *, epochs: int, sums: NoisySums) -> list[Floats]:
    """Shape functions: the average over the later half of the rounds."""
    outputs = targets.shape[1]
    share = (1 - _BINS_SHARE) / (epochs * len(codes))
    distance = WEIGHT_STEPS**2 * min(outputs, 2)
    noise = sums.deviation(distance=distance, share=share) / WEIGHT_STEPS
    terms = [np.zeros((size, outputs)) for size in binned.sizes]
    averages = [np.zeros_like(term) for term in terms]
    scores, kept = np.zeros(targets.shape), epochs - epochs // 2
    for epoch in range(epochs):
        for feature, (line, count) in enumerate(zip(codes, binned.counts, strict=True)):
            chances = expit(scores) if outputs == 1 else softmax(scores, axis=1)
            steps = residuals(targets - chances)
            exact = np.stack([np.bincount(line, weights=one, minlength=len(count)) for one in steps.T], axis=1)
            noisy = sums.measure(exact.astype(np.int64), distance=distance, share=share) / WEIGHT_STEPS
            curvature = _CURVATURE * np.maximum(count, 0.0) + _DAMPING * noise
            move = _RATE * noisy / curvature[:, None]
            terms[feature] += move
            scores += move[line]
            if epoch >= epochs - kept:
                averages[feature] += terms[feature] / kept
    return averages
