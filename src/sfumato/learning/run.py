"""Run a learning plan: bound the rows of a person, fit, and measure the model on test data."""

from __future__ import annotations

from dataclasses import dataclass, replace
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


@dataclass(frozen=True, kw_only=True)
class LearningResult:
    """A fitted model and what it achieves on test data."""

    plan: LearningPlan
    model: Any
    rows: int
    """Rows of the training data after bounding. Not published: the model file does not contain it."""
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
    labels = _labels(frame, plan)
    test = None
    if tested is not None:  # read before the charge, so that a wrong file costs nothing
        test = feature_frame(tested, plan), _labels(tested, plan)
    model.fit(feature_frame(frame, plan), labels)
    if plan.unit != "row":
        model.privacy_ = replace(model.privacy_, unit=plan.unit)
    measures = {} if test is None else measure_model(model, *test)
    return LearningResult(plan=plan, model=model, rows=frame.height, measures=measures)


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
    target = plan.target
    if target is None:
        return None
    name = target.column
    _require(frame, [name])
    column = frame.get_column(name)
    if column.null_count():
        raise WrongKind(f"The target `{name}` has missing values.", fix="Drop these rows first.")
    if target.values is not None and all(isinstance(value, str) for value in target.values):
        column = column.cast(pl.String)
    return column.to_numpy()


def _require(frame: pl.DataFrame, names: list[str]) -> None:
    for name in names:
        if name not in frame.columns:
            raise UnknownColumn(
                f"The table has no column `{name}`.", fix=did_you_mean(name, frame.columns), column=name
            )


def _read(source: str, base: Path) -> pl.DataFrame:
    return read(place(source, base)).frame
