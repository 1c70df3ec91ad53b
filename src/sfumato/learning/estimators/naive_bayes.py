"""Naive Bayes with differential privacy: noisy histograms of every feature per class."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin

from sfumato.arrays import Floats
from sfumato.learning.binning import BinnedClassifier
from sfumato.learning.noisy_sums import COUNT_STEPS

_BINS_SHARE = Fraction(1, 5)
_PRIOR_SHARE = Fraction(1, 10)


@dataclass(kw_only=True, eq=False, repr=False)
class NaiveBayes(ClassifierMixin, BinnedClassifier):  # type: ignore[misc]
    """Naive Bayes with differential privacy, for numbers in bins and for categories.

    Bins of about equal counts are learned with a fifth of the budget; the counts of every bin and class are then
    measured once. Counts below the noise are raised to it, so that a rare bin decides nothing.

    Parameters are those of :class:`~sfumato.learning.LogisticRegression` without ``steps``, and ``bins``, the largest
    number of bins of a number.

    Attributes
    ----------
    feature_log_prob_
        Per feature, the logarithm of the probability of every bin (column) in every class (line).
    class_log_prior_
        Logarithm of the probability of every class.
    bins_
        Per feature, the bin of every fine cell.
    """

    bins: int = 16

    def fit(self, X: Any, y: Any) -> NaiveBayes:  # noqa: N803
        """Charge the budget and fit the model."""
        start = self._fit_bins(X, y, share=_BINS_SHARE, most={"bins": None})
        codes, lines, sums, classes = start.codes, start.lines, start.sums, len(self.classes_)
        priors = sums.measure(
            np.bincount(codes, minlength=classes) * COUNT_STEPS, distance=COUNT_STEPS**2, share=_PRIOR_SHARE
        )
        exact = [
            np.bincount(codes * size + line, minlength=classes * size)
            for line, size in zip(lines, start.binned.sizes, strict=True)
        ]
        distance, share = len(exact) * COUNT_STEPS**2, 1 - _BINS_SHARE - _PRIOR_SHARE
        noisy = sums.measure(np.concatenate(exact) * COUNT_STEPS, distance=distance, share=share) / COUNT_STEPS
        floor = max(1.0, sums.deviation(distance=distance, share=share) / COUNT_STEPS)
        tables = np.split(noisy, np.cumsum([len(counts) for counts in exact])[:-1])
        self.class_log_prior_ = _log_shares(priors / COUNT_STEPS, 1.0)
        self.feature_log_prob_ = [_log_shares(table.reshape(classes, -1), floor) for table in tables]
        return self

    def predict_proba(self, X: object) -> Floats:  # noqa: N803
        """The probability of every class, in the order of ``classes_``."""
        lines = self._lines(X)
        scores = self.class_log_prior_ + sum(
            np.asarray(table)[:, line].T for table, line in zip(self.feature_log_prob_, lines, strict=True)
        )
        return np.asarray(softmax(scores, axis=1))


def _log_shares(counts: Floats, floor: float) -> Floats:
    raised = np.maximum(counts, 0.0) + floor
    return np.asarray(np.log(raised / raised.sum(axis=-1, keepdims=True)))
