"""Run a learning plan: bound the rows of a person, fit, and measure the model on test data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.data import read
from sfumato.dp.os_random import words
from sfumato.errors import EmptyTable, NotThatFormat, UnknownColumn, WrongKind
from sfumato.learning.fitness import measure_model
from sfumato.learning.plan import LearningPlan, place
from sfumato.wording import did_you_mean

__all__ = ["LearningResult", "feature_frame", "predict_frame", "run_plan"]


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


def run_plan(plan: LearningPlan, *, base: Path) -> LearningResult:
    """Fit the plan's estimator and charge its ledger. All refusals come before the charge."""
    model = plan.build(base=base)
    frame = _read(plan.data, base)
    tested = None if plan.test is None else _read(plan.test, base)
    if plan.unit != "row":
        frame = bounded(frame, plan.unit, plan.max_rows or 1)
    train = _columns(frame, plan)
    test = None if tested is None else _columns(tested, plan)  # before the charge, so that a wrong file costs nothing
    control = test if plan.test != plan.data else None
    if plan.control is not None:
        control = _columns(_read(plan.control, base), plan)
    model.fit(feature_frame(train, plan), _labels(train, plan))
    if plan.search is not None:
        model = model.best_estimator_
    if plan.unit != "row":
        model.privacy_ = replace(model.privacy_, unit=plan.unit)
    measures = {} if test is None else measure_model(model, feature_frame(test, plan), _labels(test, plan))
    return LearningResult(plan=plan, model=model, train=train, test=test, control=control, measures=measures)


def _columns(frame: pl.DataFrame, plan: LearningPlan) -> pl.DataFrame:
    """Features and target in the types that the estimator is given."""
    target = _target(frame, plan)
    features = feature_frame(frame, plan)
    return features if target is None else features.with_columns(target)


def bounded(frame: pl.DataFrame, unit: str, most: int) -> pl.DataFrame:
    """At most ``most`` rows of every unit, chosen at random; rows without a unit are left out."""
    _require(frame, [unit])
    keyed = frame.filter(pl.col(unit).is_not_null())
    return keyed[np.argsort(words(keyed.height))].filter(pl.int_range(pl.len()).over(unit) < most)


def feature_frame(frame: pl.DataFrame, plan: LearningPlan) -> pl.DataFrame:
    """The features of a plan; categories with text values as text."""
    texts = {n: c.values is not None and all(isinstance(v, str) for v in c.values) for n, c in plan.columns.items()}
    return _features(frame, texts)


def predict_frame(model: Any, frame: pl.DataFrame) -> pl.DataFrame:
    """Predictions of a stored model: one row per row of the table."""
    names = list(getattr(model, "feature_names_in_", []))
    if not names:
        raise NotThatFormat("The model has no feature names.", fix="Learn it from a table with column names.")
    declared = dict(model.get_params().get("categories") or {})
    texts = {name: name in declared and all(isinstance(v, str) for v in declared[name]) for name in names}
    features = _features(frame, texts)
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


def _features(frame: pl.DataFrame, texts: dict[str, bool]) -> pl.DataFrame:
    _require(frame, list(texts))
    if not frame.height:
        raise EmptyTable("The table has no rows.")
    return frame.select(pl.col(name).cast(pl.String) if text else pl.col(name) for name, text in texts.items())


def _labels(frame: pl.DataFrame, plan: LearningPlan) -> Any:
    return None if plan.target is None else frame.get_column(plan.target.column).to_numpy()


def _target(frame: pl.DataFrame, plan: LearningPlan) -> pl.Series | None:
    target = plan.target
    if target is None:
        return None
    name = target.column
    _require(frame, [name])
    column = frame.get_column(name)
    if column.null_count():
        raise WrongKind(f"The target `{name}` has missing values.", fix="Drop these rows first.")
    text = target.values is not None and all(isinstance(value, str) for value in target.values)
    return column.cast(pl.String) if text else column


def _require(frame: pl.DataFrame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise UnknownColumn(
                f"The table has no column `{name}`.", fix=did_you_mean(name, frame.columns), column=name
            )


def _read(source: str, base: Path) -> pl.DataFrame:
    return read(place(source, base)).frame
