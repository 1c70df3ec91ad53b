"""Utility of released texts for classification."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.attacks.normalize import canonical
from sfumato.data.row_codes import positions
from sfumato.documents.text_vectors import text_vectors
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_RESAMPLES = 400


class TextClassification(Measure):
    """How much worse texts are classified by a model of the release than by a model of the original.

    A nearest-centroid classifier (TF-IDF of words) learns ``target`` from the texts of some people and is tested on
    original texts of the others, once with the released and once with the original texts of the former. The value is
    the drop in accuracy; a rise, which chance can bring, counts as 0. The interval comes from a bootstrap of the test
    texts; the detail has both accuracies.
    """

    about: ClassVar[About] = About.UTILITY
    label: ClassVar[str] = "drop in accuracy of a text classifier"
    examples = ({"column": "zip", "target": "sex"}, {"column": "sex", "target": "diagnosis", "test": 0.5})
    reference: ClassVar[str] = (
        "Manning, C., Raghavan, P., Schütze, H. (2008). Introduction to information retrieval. ISBN 978-0-521-86571-5"
    )

    column: str
    """Column with the texts."""
    target: str
    """Column to predict, in the original: a department, a diagnosis, a subject."""
    rows: Annotated[int, Field(ge=100)] = 20_000
    """Most texts for training, and for testing."""
    test: Annotated[float, Field(gt=0.05, lt=0.95)] = 0.3
    """Share of people kept for testing."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        pair.release.table.require([self.column])
        pair.original.table.require([self.column, self.target])
        if pair.lineage is None:
            raise NotApplicable(
                "Classification needs the row correspondence between original and release.",
                fix="Pass the row map (`lineage`) that was written with the release.",
            )
        original = pair.original.table.frame
        labels = original[self.target].cast(pl.String)
        classes = labels.drop_nulls().unique().sort()
        if len(classes) < 2:
            raise NotApplicable(f"The column `{self.target}` does not vary.")
        label = positions(labels, classes).fill_null(-1).to_numpy().astype(np.int64)
        held = self._held(pair, rng.child("split").generator)
        testing = self._some(np.flatnonzero(held & (label >= 0)), rng.child("test").generator)
        if not len(testing):
            raise NotApplicable("Nobody is left for testing.")
        training = self._some(np.flatnonzero(~held & (label >= 0)), rng.child("train").generator)
        place = np.full(len(label), -1, dtype=np.int64)
        place[pair.lineage.rows[pair.lineage.rows >= 0]] = np.flatnonzero(pair.lineage.rows >= 0)
        shown = training[place[training] >= 0]
        texts, masked = canonical(original[self.column]), canonical(pair.masked[self.column])
        question, truth = texts.gather(testing), label[testing]
        before = _predicted(question, texts.gather(training), label[training], len(classes)) == truth
        after = _predicted(question, masked.gather(place[shown]), label[shown], len(classes)) == truth
        drop = before.astype(np.float64) - after
        draw = rng.child("bootstrap").generator
        means = drop[draw.integers(0, len(drop), (_RESAMPLES, len(drop)))].mean(axis=1)
        low, high = (max(0.0, float(end)) for end in np.quantile(means, (0.025, 0.975)))
        value = max(0.0, float(drop.mean()))
        return MeasureResult(
            measure=self.part_name(),
            value=value,
            low=min(low, value),
            high=max(high, value),
            detail={
                "accuracy_before": float(before.mean()),
                "accuracy": float(after.mean()),
                "most_frequent": float(np.bincount(truth).max() / len(truth)),
                "texts": len(testing),
            },
        )

    def _held(self, pair: ReleasePair, draw: np.random.Generator) -> npt.NDArray[np.bool_]:
        """Which rows are for testing: all rows of a person or none."""
        unit = pair.original.schema.unit
        table = pair.original.table
        who = np.arange(table.rows) if unit is None else table.column(unit).rank("dense").fill_null(0).to_numpy()
        return (draw.random(int(who.max(initial=0)) + 1) < self.test)[who.astype(np.int64)]

    def _some(self, rows: Ints, draw: np.random.Generator) -> Ints:
        return np.sort(draw.choice(rows, min(self.rows, len(rows)), replace=False))


def _predicted(question: pl.Series, texts: pl.Series, label: Ints, classes: int) -> Ints:
    """The class whose mean vector is most similar to each question."""
    if not len(label):
        return np.full(len(question), -1, dtype=np.int64)
    asked, known = text_vectors(question, texts)
    from scipy.sparse import csr_matrix

    members = csr_matrix((np.ones(len(label)), (label, np.arange(len(label)))), shape=(classes, len(label)))
    centroids = (members @ known).toarray()
    norms = np.sqrt((centroids**2).sum(axis=1, keepdims=True))
    similarity = asked @ (centroids / np.where(norms > 0, norms, 1.0)).T
    return np.asarray(similarity.argmax(axis=1), dtype=np.int64)
