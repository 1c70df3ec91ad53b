"""Reconstruction of a training record from the coefficients of a linear model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Discloses
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.models._base import AttackedModel, Floats, ModelAttack
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class CoefficientReconstruction(ModelAttack):
    """Reconstruction by an informed attacker: they know all training records but one and the coefficients, and solve
    the optimality condition of the linear or logistic regression for the missing record.

    The residuals, multiplied by the features, sum to minus the gradient of the penalty. What the known
    records leave of it is the missing record times its residual; the intercept gives the residual.
    """

    discloses = Discloses.ATTRIBUTE
    reference = (
        "Balle, Cherubin, Hayes (2022). Reconstructing training data with informed adversaries. arXiv:2201.04845"
    )

    tolerance: float = Field(default=0.1, gt=0, le=1)
    """A record counts as reconstructed if every feature is within this share of its standard deviation, and the label
    within this share of its own (a class exactly)."""

    def run(
        self,
        model: AttackedModel,
        rng: Rng,
        *,
        n_targets: int,
        secrets: Sequence[str],
        progress: Progress = SILENT,
    ) -> list[Outcome]:
        check_deadline(progress)
        head, tail = _linear_part(model.estimator)
        features, truth = _inputs(model, head, model.members)
        penalty = _penalty(tail)
        weights, intercept = np.ravel(tail.coef_), float(np.ravel(tail.intercept_)[0])
        logistic = model.is_classifier
        if logistic:
            truth = (truth == tail.classes_[1]).astype(np.float64)
        truth = truth.astype(np.float64)

        def residuals(design: Floats, labels: Floats) -> Floats:
            linear = design @ weights + intercept
            return np.asarray((0.5 + 0.5 * np.tanh(linear / 2) if logistic else linear) - labels)

        parts = residuals(features, truth)[:, None] * np.hstack([np.ones((len(features), 1)), features])
        total = parts.sum(axis=0)
        chosen = rng.child("targets").generator.choice(len(features), min(n_targets, len(features)), replace=False)
        known = total - parts[chosen]
        left = -known - np.concatenate([[0.0], penalty * weights])
        with np.errstate(divide="ignore", invalid="ignore"):
            guessed = left[:, 1:] / left[:, :1]
        linear = guessed @ weights + intercept
        label = (left[:, 0] < 0).astype(np.float64) if logistic else linear - left[:, 0]
        width = features.std(axis=0)

        def right(records: Floats, labels: Floats) -> Floats:
            near = np.abs(guessed - records) <= self.tolerance * np.where(width > 0, width, 1e-9)
            slack = 0.0 if logistic else self.tolerance * truth.std()
            return np.asarray(near.all(axis=1) & (np.abs(label - labels) <= slack), dtype=np.float64)

        others = rng.child("control").generator.choice(model.control.height, len(chosen))
        unrelated, other_truth = _inputs(model, head, model.control[others])
        if logistic:
            other_truth = (other_truth == tail.classes_[1]).astype(np.float64)
        hits = right(features[chosen], truth[chosen])
        middle = np.abs(features[chosen] - features.mean(axis=0)) <= self.tolerance * np.where(width > 0, width, 1e-9)
        return [
            Outcome(
                attack=self.part_name(),
                discloses=Discloses.ATTRIBUTE,
                main=Arm(hits=int(hits.sum()), trials=len(hits)),
                baseline=Arm(hits=int(middle.all(axis=1).sum()), trials=len(hits)),
                control=Arm(hits=int(right(unrelated, other_truth.astype(np.float64)).sum()), trials=len(hits)),
                claims=int(np.isfinite(guessed).all(axis=1).sum()),
                knows=("all other records",),
                secret="whole record",
                parameters=self.to_dict(),
                threat=self.summary(),
                truth="cross-fitting" if model.crossfit else "control file",
                hit=hits.astype(np.float64),
            )
        ]


def _linear_part(estimator: Any) -> tuple[Any, Any]:
    """The steps before the linear model (None if there are none) and the linear model."""
    steps = found if isinstance(found := getattr(estimator, "steps", None), list) else None
    tail = steps[-1][1] if steps else estimator
    kind = type(tail).__name__
    if not type(tail).__module__.startswith("sklearn."):
        raise NotApplicable(
            "Reconstruction from coefficients needs a model of scikit-learn, which is an exact optimum."
        )
    if kind not in ("LinearRegression", "Ridge", "LogisticRegression") or not hasattr(tail, "coef_"):
        raise NotApplicable("Reconstruction from coefficients needs a linear or logistic regression.")
    if np.ndim(tail.coef_) > 1 and len(tail.coef_) > 1:
        raise NotApplicable("Reconstruction from coefficients needs one target column or two classes.")
    if not getattr(tail, "fit_intercept", True) or getattr(tail, "class_weight", None) is not None:
        raise NotApplicable("Reconstruction from coefficients needs an intercept and equal weights.")
    return (estimator[:-1] if steps and len(steps) > 1 else None), tail


def _inputs(model: AttackedModel, head: Any, frame: pl.DataFrame) -> tuple[Floats, Any]:
    design = model.design(frame)
    values = head.transform(design) if head is not None else design
    values = values.to_numpy() if isinstance(values, pl.DataFrame) else values
    if hasattr(values, "toarray"):
        values = values.toarray()
    return np.asarray(values, dtype=np.float64), frame[model.label].to_numpy()


def _penalty(tail: Any) -> float:
    """Weight of half the squared coefficients beside the sum of the losses."""
    if type(tail).__name__ == "LogisticRegression":
        if getattr(tail, "l1_ratio", None) not in (None, 0, 0.0) or tail.get_params().get("penalty") == "l1":
            raise NotApplicable("Reconstruction from coefficients needs a squared penalty.")
        unpenalized = tail.get_params().get("penalty", "l2") is None or np.isinf(tail.C)
        return 0.0 if unpenalized else 1.0 / float(tail.C)
    return float(getattr(tail, "alpha", 0.0))
