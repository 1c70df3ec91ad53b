"""Standardization with differential privacy: noisy means and variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from sfumato.arrays import Floats
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateEstimator
from sfumato.learning.noisy_sums import FEATURE_STEPS


@dataclass(kw_only=True, eq=False, repr=False)
class Standardizer(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Standardize numbers by noisy means and noisy standard deviations.

    Sums and sums of squares of all features, and the number of rows, are measured at once. A standard deviation is at
    least a thousandth of the width of the bounds.

    Parameters
    ----------
    epsilon, delta, bounds, max_rows, ledger, dataset
        As for :class:`~sfumato.learning.LogisticRegression`. Categories are not scaled: standardize numbers only.

    Attributes
    ----------
    mean_, scale_
        Noisy mean and noisy standard deviation of every feature, in its own unit.
    """

    def fit(self, X: Any, y: Any = None) -> Standardizer:  # noqa: N803
        """Charge the budget and measure means and variances."""
        self._check_budget()
        rows, _ = self._checked_rows(X, reset=True)
        domain = self._domain()
        design = domain.in_steps(rows, constant=True)
        exact = np.concatenate([design.sum(axis=0) * FEATURE_STEPS, (design[:, :-1] ** 2).sum(axis=0)])
        # In squared steps a row moves every sum by at most 1: twice per feature, and the number of rows.
        noisy = self._charge().measure(
            exact.astype(np.int64), distance=(2 * domain.width + 1) * FEATURE_STEPS**4, share=1
        ) / float(FEATURE_STEPS**2)
        rows_seen = max(1.0, float(noisy[domain.width]))
        mean = np.clip(noisy[: domain.width] / rows_seen, -1, 1)
        variance = noisy[domain.width + 1 :] / rows_seen - mean**2
        low, half = _ends(domain.columns)
        self.mean_ = low + half * (1 + mean)
        self.scale_ = half * np.sqrt(np.clip(variance, 0.002**2, 1))
        return self

    def transform(self, X: object) -> Floats:  # noqa: N803
        """Rows minus the mean, in standard deviations."""
        rows = self._fitted_rows(X)
        return np.asarray((np.asarray(rows, dtype=np.float64) - self.mean_) / self.scale_)


def _ends(columns: tuple[RangeDomain | ValuesDomain, ...]) -> tuple[Floats, Floats]:
    """Lower bounds and half widths."""
    numbers = [column for column in columns if isinstance(column, RangeDomain)]
    if len(numbers) < len(columns):
        raise BadParameter("Only numbers can be standardized.")
    low = np.array([column.low for column in numbers])
    return low, np.array([column.high for column in numbers]) / 2 - low / 2
