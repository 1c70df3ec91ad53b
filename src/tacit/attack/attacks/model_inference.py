"""The sensitive value of a person, predicted by a model trained on the release."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from tacit.attack.attack import Discloses, Guesses, Linking, View
from tacit.attack.features import points
from tacit.errors import ExtraMissing, NotApplicable
from tacit.progress import SILENT, Progress, portions
from tacit.rng import Rng

__all__ = ["ModelInference"]

Floats = npt.NDArray[np.float64]


class ModelInference(Linking):
    """Somebody trains a model on the release that predicts the sensitive value from what he knows, and applies it.

    "neighbours" takes the most frequent value (the median, for numbers) of the nearest rows; "boosting" is gradient
    boosting of trees. The part of the success that people outside the release share (control) is what the release
    teaches about everybody, which is its purpose; the excess over it is what it gives away about those inside.
    """

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE
    main: ClassVar[str] = "model"
    examples: ClassVar = ({"neighbours": 1},)
    reference: ClassVar[str] = (
        "Giomi, M. et al. (2023). A unified framework for quantifying privacy risk in synthetic data. PoPETs 2023(2). "
        "doi:10.56553/popets-2023-0055"
    )

    secret: str | None = None
    """The column sought; may be left out when exactly one released column is declared sensitive."""
    model: Literal["neighbours", "boosting"] = "neighbours"
    """What is trained."""
    neighbours: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many nearest rows vote."""
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """For numbers: how far off a guess may be and still count, as a share of the true value."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        assert view.secret is not None
        secret = view.release.table.column(view.secret)
        usable = secret.is_not_null().to_numpy()
        if not usable.any():
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        found = points(view, own=False, progress=progress)
        released, values = found.released[usable], secret.filter(pl.Series(usable))
        numeric = values.dtype.is_numeric() and self.tolerance > 0
        if self.model == "neighbours":
            guess, confidence = self._neighbours(found.targets, released, values, numeric, progress)
        else:
            with progress.task("training a model", 1) as tick:
                guess, confidence = _boosted(found.targets, released, values, numeric, rng)
                tick(1)
        return Guesses(
            value=guess.alias(view.secret),
            made=np.ones(len(guess), dtype=np.bool_),
            confidence=confidence,
            detail={"columns": list(found.names), "model": self.model},
            tried=len(guess),
        )

    def _neighbours(
        self, targets: Floats, released: Floats, values: pl.Series, numeric: bool, progress: Progress
    ) -> tuple[pl.Series, Floats]:
        from scipy.spatial import cKDTree

        count = min(self.neighbours, len(released))
        tree = cKDTree(released)
        near = np.empty((len(targets), count), dtype=np.int64)
        done = 0
        for part in portions(progress, "model inference", len(targets), 500):
            near[part] = tree.query(targets[part], k=count, workers=-1)[1].reshape(-1, count)
            done = part.stop
        near = near[:done]
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
    table = pl.DataFrame({"v": index}).with_row_index("code")
    codes = values.alias("v").to_frame().join(table, on="v", how="left", maintain_order="left")["code"]
    return codes.to_numpy().astype(np.int64), index


def _boosted(targets: Floats, released: Floats, values: pl.Series, numeric: bool, rng: Rng) -> tuple[pl.Series, Floats]:
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    except ImportError:
        raise ExtraMissing(
            "Gradient boosting needs scikit-learn.", fix="Install it with `pip install 'tacit[learning]'`."
        ) from None
    seed = int(rng.child("boosting").generator.integers(2**31))
    if numeric:
        regressor = HistGradientBoostingRegressor(loss="absolute_error", random_state=seed)
        regressor.fit(released, values.cast(pl.Float64).to_numpy())
        return pl.Series(regressor.predict(targets)), np.full(len(targets), 0.5)
    codes, index = _codes(values)
    if len(index) == 1:
        return index.gather(np.zeros(len(targets), dtype=np.int64)), np.ones(len(targets))
    classifier: Any = HistGradientBoostingClassifier(random_state=seed)
    classifier.fit(released, codes)
    chance = classifier.predict_proba(targets)
    return index.gather(classifier.classes_[chance.argmax(axis=1)]), chance.max(axis=1)
