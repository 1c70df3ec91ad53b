"""Weights of features in a fitted private model: how far each can move a prediction. Post-processing of the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.dataset import ValuesDomain
from sfumato.learning.domain import FeatureDomain, width


def feature_weights(model: Any) -> dict[str, float]:
    """For additive and linear models, the range of each feature's part of the score; empty for other models.

    The range is that of the public domain: from the lowest to the highest bin, bound or category.
    """
    names = [str(name) for name in getattr(model, "feature_names_in_", range(model.n_features_in_))]
    if hasattr(model, "terms_"):
        return {n: float(np.ptp(np.asarray(t), axis=0).max()) for n, t in zip(names, model.terms_, strict=True)}
    if not hasattr(model, "coef_"):
        return {}
    domain = FeatureDomain.declare(
        model.n_features_in_,
        bounds=model.bounds,
        categories=model.categories,
        names=getattr(model, "feature_names_in_", None),
    )
    coefficients, found, start = np.atleast_2d(model.coef_), {}, 0
    for name, column in zip(names, domain.columns, strict=True):
        part = coefficients[:, start : start + width(column)]
        start += width(column)
        if isinstance(column, ValuesDomain):  # a value that is not declared has no part
            spread = np.maximum(part.max(axis=1), 0) - np.minimum(part.min(axis=1), 0)
        else:
            spread = 2 * np.abs(part[:, 0])
        found[name] = float(spread.max())
    return found
