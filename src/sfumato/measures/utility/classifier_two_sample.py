"""Classifier two-sample test: gradient boosting on released against original rows."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._selection import auc, auc_error, drawn, persons
from sfumato.measures.utility._values import modest_threads, need_sklearn
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class ClassifierTwoSample(Measure):
    """Area under the ROC curve of a gradient boosting classifier that tells release from original.

    0.5: it cannot (values below, which chance produces, are reported as 0.5); 1: every row gives away which table it
    is from. Scored on rows it was not trained on; a person's two rows are always on the same side of the split.
    """

    about: ClassVar[About] = About.UTILITY
    reference: ClassVar[str] = "Lopez-Paz, Oquab: Revisiting classifier two-sample tests (ICLR 2017), arXiv:1610.06545"

    rows: Annotated[int, Field(ge=100)] = 20_000
    """Most rows of each table that are used, drawn at random."""
    folds: Annotated[int, Field(ge=2, le=10)] = 3
    """Parts of the cross-validation."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        need_sklearn(self.part_name())
        from sklearn.ensemble import HistGradientBoostingClassifier

        random = rng.generator
        (before, left), (after, right) = drawn(pair, self.rows, random, one_hot=False)
        who, whose = persons(pair)
        if min(len(left), len(right)) < 10 * self.folds:
            raise NotApplicable(f"Telling the tables apart needs at least {10 * self.folds} rows in each.")
        design = np.concatenate([before, after])
        truth = np.concatenate([np.zeros(len(left), dtype=np.int64), np.ones(len(right), dtype=np.int64)])
        group = np.concatenate([who[left], whose[right]])
        fold = random.integers(self.folds, size=int(group.max()) + 1)[group]
        score = np.full(len(truth), 0.5)
        with progress.task("classifier two-sample", self.folds) as tick, modest_threads(len(truth)):
            for part in range(self.folds):
                train, test = fold != part, fold == part
                if len(np.unique(truth[train])) == 2 and test.any():
                    model = HistGradientBoostingClassifier(
                        max_iter=60, early_stopping=False, random_state=int(random.integers(2**31))
                    )
                    model.fit(design[train], truth[train])
                    score[test] = model.predict_proba(design[test])[:, 1]
                tick(1)
        plain = auc(truth, score)
        area, error = max(0.5, plain), auc_error(max(plain, 0.5), int(truth.sum()), int((1 - truth).sum()))
        return MeasureResult(
            measure=self.part_name(),
            value=area,
            low=max(0.5, area - 1.96 * error),
            high=min(1.0, area + 1.96 * error),
            detail={"auc": plain, "rows": len(truth)},
        )
