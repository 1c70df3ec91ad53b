"""Measures of a model on test data, with 95 % intervals. They describe the test rows and are not private."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from sfumato.stats import wilson

__all__ = ["measure_model"]

_NORMAL = 1.959964


def measure_model(model: Any, features: pl.DataFrame, labels: Any) -> dict[str, float]:
    """Accuracy with the share of the largest class as baseline and the area under the curve; R² and error; inertia."""
    from sklearn.base import is_classifier, is_regressor
    from sklearn.metrics import mean_absolute_error, r2_score

    if is_classifier(model):
        hits = model.predict(features) == labels
        low, high = wilson(int(hits.sum()), len(hits))
        _, counts = np.unique(labels, return_counts=True)
        found = {
            "accuracy": float(hits.mean()), "accuracy_low": low, "accuracy_high": high,
            "accuracy_of_largest_class": float(counts.max() / counts.sum()),
        }  # fmt: skip
        return found | _area(model.predict_proba(features), labels, model.classes_)
    if is_regressor(model):
        guesses = model.predict(features)
        return {
            "r2": float(r2_score(labels, guesses)),
            "mean_absolute_error": float(mean_absolute_error(labels, guesses)),
        }
    if hasattr(model, "cluster_centers_"):
        return {"mean_squared_distance": -model.score(features) / len(features)}
    return {}


def _area(chances: Any, labels: Any, classes: Any) -> dict[str, float]:
    """Area under the ROC curve of two classes, with the interval of Hanley and McNeil (1982)."""
    from sklearn.metrics import roc_auc_score

    positive = np.asarray(labels) == classes[-1]
    many, few = int(positive.sum()), int((~positive).sum())
    if len(classes) != 2 or not many or not few:
        return {}
    area = float(roc_auc_score(positive, chances[:, 1]))
    first, second = area / (2 - area), 2 * area * area / (1 + area)
    spread = (area * (1 - area) + (many - 1) * (first - area**2) + (few - 1) * (second - area**2)) / (many * few)
    half = _NORMAL * sqrt(max(spread, 0.0))
    return {"auc": area, "auc_low": max(0.0, area - half), "auc_high": min(1.0, area + half)}
