"""Principal component analysis with differential privacy: the AnalyzeGauss mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from sfumato.arrays import Floats
from sfumato.errors import BadParameter
from sfumato.learning.base import PrivateEstimator
from sfumato.learning.moments import noisy_moments


@dataclass(kw_only=True, eq=False, repr=False)
class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Principal component analysis with differential privacy.

    Mean and second moments of the features, scaled to -1 .. 1 by their public bounds, are measured at once with noise.
    Components are the eigenvectors of the noisy covariance.

    Parameters
    ----------
    n_components
        Number of components. Default: all.
    epsilon, delta, bounds, categories, max_rows, ledger, dataset
        As for :class:`~sfumato.learning.LogisticRegression`.

    Attributes
    ----------
    components_, mean_, explained_variance_, explained_variance_ratio_
        As in scikit-learn, for the scaled features; noisy variances below 0 are 0.
    """

    n_components: int | None = field(default=None, kw_only=False)
    categories: Any = None

    def fit(self, X: Any, y: Any = None) -> PCA:  # noqa: N803
        """Charge the budget and find the components."""
        self._check_budget()
        rows, _ = self._checked_rows(X, reset=True)
        domain = self._domain()
        wanted = domain.width if self.n_components is None else self.n_components
        if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= domain.width:
            raise BadParameter(f"`n_components` must lie in 1 .. {domain.width}, the number of scaled features.")
        design = domain.in_steps(rows, constant=True)
        moments, _, _ = noisy_moments(design, norm=domain.squared_norm + 1, share=1, sums=self._charge())
        self.mean_ = np.clip(moments[-1, :-1], -1, 1)
        values, directions = np.linalg.eigh(moments[:-1, :-1] - np.outer(self.mean_, self.mean_))
        order = np.argsort(values)[::-1][:wanted]
        components = directions[:, order].T
        signs = np.sign(components[np.arange(wanted), np.argmax(np.abs(components), axis=1)])
        self.components_ = components * signs[:, None]
        variances = np.maximum(values, 0)
        self.explained_variance_ = variances[order]
        self.explained_variance_ratio_ = variances[order] / max(float(variances.sum()), np.finfo(float).tiny)
        self.n_components_ = wanted
        return self

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: object) -> Floats:  # noqa: N803
        """Coordinates of the rows in the components."""
        rows = self._fitted_rows(X)
        return np.asarray((self._domain().scaled(rows) - self.mean_) @ self.components_.T)
