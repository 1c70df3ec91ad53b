"""Attribute inference by a predictive model trained on the release."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Array
from sfumato.attacks.base import Attack, Guesses, Inference, Stage, View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import BoxTree
from sfumato.data.row_codes import positions
from sfumato.deadline import Deadline, batches, check_deadline
from sfumato.errors import NotApplicable, OutOfTime
from sfumato.extras import missing_extra
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]

_ROWS = 30_000
"""Boosting learns a rule from so many rows as well as from more."""
_CLASSES = 100
"""Boosting grows one tree for each value in every round."""
_TREES = 100
_SLICE = 25
"""After so many trees the clock is looked at."""


class ModelInference(Inference):
    """An attacker trains a model on the release that predicts the sensitive value from the values they know.

    "nearest" takes the value of the nearest row; "neighbours" takes the most frequent value of several nearest rows
    (the median, for numbers); "boosting" is gradient boosting of decision trees, trained on at most 30,000 rows. Which
    one discloses most depends on the release: the nearest row if people can be found in it, the others if it reveals a
    general rule. "strongest" selects the model that is correct most often for a quarter of the targets (at most 1,000)
    and is evaluated on the others.

    The share of the success that is also reached for people outside the release (the control arm) is general knowledge,
    which a release is made for. The excess over it is disclosure about the people inside.
    """

    stage: ClassVar[Stage] = Stage.INFERENCE
    order_in_stage: ClassVar[int] = 1
    cheap: ClassVar[bool] = True
    main: ClassVar[str] = "model"
    examples = ({}, {"model": "neighbours", "neighbours": 1})
    reference: ClassVar[str] = (
        "Giomi, M. et al. (2023). A unified framework for quantifying privacy risk in synthetic data. PoPETs 2023(2). "
        "doi:10.56553/popets-2023-0055"
    )

    model: Literal["strongest", "nearest", "neighbours", "boosting"] = "strongest"
    """The model. Without scikit-learn "strongest" selects among the first two."""
    neighbours: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of nearest rows that vote, for the model "neighbours"."""

    @classmethod
    def suits(cls, scenario: AttackScenario, secret: str) -> bool:
        return bool(scenario.known) and (not scenario.steps or len(scenario.unperturbed) < len(scenario.known))

    @property
    def setting(self) -> str:
        return "" if self.model == "strongest" else f"by {self.model}"

    @property
    def alternatives(self) -> tuple[Attack, ...]:
        if self.model != "strongest":
            return ()
        learning = ["boosting"] if find_spec("sklearn") is not None else []
        return tuple(self.model_copy(update={"model": name}) for name in ("nearest", "neighbours", *learning))

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        secret = view.release.table.column(view.secret)
        usable = secret.is_not_null().to_numpy()
        if not usable.any():
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        features = points(view, own=False, progress=progress)
        released, values = features.released[usable], secret.filter(pl.Series(usable))
        numeric = values.dtype.is_numeric() and self.tolerance > 0
        if self.model == "boosting":
            guess, confidence = _boosted(features.targets, released, values, numeric, rng, progress)
        else:
            # Without targets to select the strongest model on, the nearest row is used.
            count = self.neighbours if self.model == "neighbours" else 1
            guess, confidence = _neighbours(features.targets, released, values, numeric, count, progress)
        return Guesses(
            value=guess.alias(view.secret),
            made=np.ones(len(guess), dtype=np.bool_),
            confidence=confidence,
            detail={"columns": list(features.names), "model": self.model},
            tried=len(guess),
        )


def _neighbours(
    targets: Floats, released: Floats, values: pl.Series, numeric: bool, neighbours: int, progress: Progress
) -> tuple[pl.Series, Floats]:
    check_deadline(progress)
    near, _ = BoxTree.of(released).near(targets, neighbours, progress, "model inference")
    done, count = near.shape
    if numeric:
        level = values.cast(pl.Float64).to_numpy()[near]
        return pl.Series(np.median(level, axis=1)), np.full(done, 1 / count)
    codes, index = _codes(values)
    votes = np.zeros((done, len(index)))
    np.add.at(votes, (np.arange(done)[:, None], codes[near]), 1.0)
    # Ties go to the value that is more frequent in the whole release.
    votes += 1e-6 * np.bincount(codes, minlength=len(index)) / len(codes)
    best = votes.argmax(axis=1)
    return index.gather(best), votes.max(axis=1) / votes.sum(axis=1)


def _codes(values: pl.Series) -> tuple[npt.NDArray[np.int64], pl.Series]:
    index = values.unique().sort()
    if len(index) > 10_000:
        raise NotApplicable(
            f"Column `{values.name}` has {len(index)} values, too many to be guessed exactly.", fix="Set a `tolerance`."
        )
    return positions(values, index).to_numpy().astype(np.int64), index


def _boosted(
    targets: Floats, released: Floats, values: pl.Series, numeric: bool, rng: Rng, progress: Progress
) -> tuple[pl.Series, Floats]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    except ImportError:
        raise missing_extra("learning", "scikit-learn", needed_by="Gradient boosting") from None
    draw = rng.child("boosting").generator
    seed = int(draw.integers(2**31))
    if len(released) > _ROWS:
        some = np.sort(draw.permutation(len(released))[:_ROWS])
        released, values = released[some], values.gather(some)
    if numeric:
        regressor = HistGradientBoostingRegressor(loss="absolute_error", random_state=seed, warm_start=True)
        _trained(regressor, released, values.cast(pl.Float64).to_numpy(), progress)
        return pl.Series(regressor.predict(targets)), np.full(len(targets), 0.5)
    codes, index = _codes(values)
    if len(index) == 1:
        return index.gather(np.zeros(len(targets), dtype=np.int64)), np.ones(len(targets))
    if len(index) > _CLASSES:
        raise NotApplicable(f"Column `{values.name}` has {len(index)} values, too many to be learned one by one.")
    classifier: Any = HistGradientBoostingClassifier(random_state=seed, warm_start=True)
    _trained(classifier, released, codes, progress)
    chance = classifier.predict_proba(targets)
    return index.gather(classifier.classes_[chance.argmax(axis=1)]), chance.max(axis=1)


def _trained(model: Any, released: Floats, labels: Array, progress: Progress) -> None:
    """Train a model a few trees at a time, as long as there is time; with no time for the first few there is none.

    Without a deadline all trees are grown at once: each continuation sorts the columns again.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    done = 0
    # Small trees on several threads are mostly waiting: on a busy machine one thread was fifty times faster than two.
    with threadpool_limits(1, user_api="openmp"):
        for part in batches(progress, "training a model", _TREES, _SLICE if isinstance(progress, Deadline) else _TREES):
            model.set_params(max_iter=part.stop).fit(released, labels)
            done = part.stop
    if done == 0:
        raise OutOfTime("Stopped: time was up before a model had been trained.", fix="Allow more time.")
