"""Run a learning plan: bound the rows of a person, fit, and measure the model on test data."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Array
from sfumato.dataset import RangeDomain
from sfumato.dp.contribution_bounds import bound_table
from sfumato.errors import EmptyTable, NotThatFormat, UnknownColumn
from sfumato.learning.plan import LearningPlan
from sfumato.stats import wilson
from sfumato.wording import did_you_mean


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningResult:
    """A fitted model and what it achieves on test data."""

    plan: LearningPlan
    model: Any
    train: pl.DataFrame = field(repr=False)
    """Features and target of the rows that were learned, after bounding. Confidential."""
    test: pl.DataFrame | None = field(repr=False)
    """Features and target of the test rows."""
    control: pl.DataFrame | None = field(repr=False)
    """Features and target of people who are not in the training data. Confidential."""
    measures: dict[str, float]
    """On the test data. Not covered by the guarantee."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return {
            "estimator": self.plan.learn,
            "privacy": self.model.privacy_.to_dict(),
            "measures": self.measures,
            "measures_are_private": False,
        }


def run_plan(plan: LearningPlan) -> LearningResult:
    """Fit the plan's estimator and charge its ledger. All refusals come before the charge."""
    model, people = plan.build(), plan.people
    frame, model._cut = bound_table(people.frame(plan.columns), people)
    train = _complete(frame, plan)
    # Before the charge, so that a wrong file costs nothing.
    test, control = (
        None if source is None else _complete(people.frame(plan.columns, source=source, unit=False), plan)
        for source in (plan.test, plan.control)
    )
    if plan.control is None and plan.test != people.source:
        control = test
    model._least_rows = 0
    model.fit(feature_frame(train, plan), _labels(train, plan))
    if plan.search is not None:
        model = model.best_estimator_
    model.target_name_ = plan.target
    measures = {} if test is None else measure_model(model, feature_frame(test, plan), _labels(test, plan))
    return LearningResult(plan=plan, model=model, train=train, test=test, control=control, measures=measures)


def _complete(frame: pl.DataFrame, plan: LearningPlan) -> pl.DataFrame:
    """The rows that can be learned from: all numbers are there, and the target has a declared value.

    Others are left out one by one: a refusal would tell that there is such a row.
    """
    numbers = [name for name in plan.features if isinstance(plan.domain(name), RangeDomain)]
    if plan.target is None:
        return frame.drop_nulls(numbers)
    kept, domain = frame.drop_nulls([*numbers, plan.target]), plan.domain(plan.target)
    if isinstance(domain, RangeDomain):
        return kept
    label = kept.get_column(plan.target)
    return kept.filter(label.is_in(pl.Series(domain.values, dtype=label.dtype, strict=False).implode()))


def feature_frame(frame: pl.DataFrame, plan: LearningPlan) -> pl.DataFrame:
    """The features of a plan."""
    return frame.select(plan.features)


def predict_frame(model: Any, frame: pl.DataFrame) -> pl.DataFrame:
    """Predictions of a stored model: one row per row of the table."""
    names = list(getattr(model, "feature_names_in_", []))
    if not names:
        raise NotThatFormat("The model has no feature names.", fix="Learn it from a table with column names.")
    if not frame.height:
        raise EmptyTable("The table has no rows.")
    features = _features(frame, _texts(model, names))
    try:
        if hasattr(model, "predict_proba"):
            chances = model.predict_proba(features)
            labels = np.asarray(model.classes_)
            columns = {"prediction": pl.Series(labels[np.argmax(chances, axis=1)].tolist())}
            columns |= {f"probability {label}": pl.Series(chances[:, i]) for i, label in enumerate(labels.tolist())}
            return pl.DataFrame(columns)
        if hasattr(model, "predict"):
            return pl.DataFrame({"prediction": model.predict(features)})
        return pl.DataFrame(model.transform(features), schema=[str(n) for n in model.get_feature_names_out()])
    except (IndexError, KeyError, AttributeError, TypeError):
        raise NotThatFormat("The model file is damaged: its arrays do not fit together.") from None


def score_frame(model: Any, frame: pl.DataFrame, label: str) -> dict[str, float]:
    """Figures of a stored model on the rows of a table that lack no value."""
    names = [str(name) for name in getattr(model, "feature_names_in_", [n for n in frame.columns if n != label])]
    _require(frame, [*names, label])
    kept = frame.drop_nulls([*names, label])
    if not kept.height:
        raise EmptyTable("No row has all features and the label.")
    features: Any = _features(kept, _texts(model, names))
    if not hasattr(model, "feature_names_in_"):
        features = features.to_numpy()
    labels = kept.get_column(label)
    if np.asarray(getattr(model, "classes_", [])).dtype.kind in "UO":
        labels = labels.cast(pl.String)
    return measure_model(model, features, labels.to_numpy())


def _texts(model: Any, names: list[str]) -> dict[str, bool]:
    """Which features are declared texts."""
    declared = dict(model.get_params().get("categories") or {}) if hasattr(model, "privacy_") else {}
    return {name: name in declared and all(isinstance(v, str) for v in declared[name]) for name in names}


def _features(frame: pl.DataFrame, texts: dict[str, bool]) -> pl.DataFrame:
    _require(frame, list(texts))
    return frame.select(pl.col(name).cast(pl.String) if text else pl.col(name) for name, text in texts.items())


def _labels(frame: pl.DataFrame, plan: LearningPlan) -> Array | None:
    return None if plan.target is None else frame.get_column(plan.target).to_numpy()


def _require(frame: pl.DataFrame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise UnknownColumn(
                f"The table has no column `{name}`.", fix=did_you_mean(name, frame.columns), column=name
            )


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
