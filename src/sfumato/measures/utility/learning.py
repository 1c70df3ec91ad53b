"""Machine learning: train on the release, test on the original."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats, Ints
from sfumato.dataset import Kind
from sfumato.errors import NotApplicable
from sfumato.measures.base import About, Measure, MeasureResult, ReleasePair
from sfumato.measures.utility._selection import auc, persons, take
from sfumato.measures.utility._spread import comparable
from sfumato.measures.utility._values import coded, features, modest_threads, need_sklearn, numbers
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class Learning(Measure):
    """How much worse a model predicts real people when it was trained on the release instead of the original.

    For each target column: a model of the other columns trained on the release, one trained on the original, both
    tested on original rows that neither has seen. Categories are scored by the area under the ROC curve (one against
    the rest, weighted by class), numbers by R² (at least -1). The value is the mean drop in score; a rise, which
    chance can bring, counts as 0. Drops by target are plain differences; the detail gives both scores. The interval
    comes from a bootstrap of the test rows.
    """

    about: ClassVar[About] = About.UTILITY
    main: ClassVar[str | None] = "targets"
    examples = ({}, {"targets": ["diagnosis"], "model": "linear"})
    reference: ClassVar[str] = (
        "Jordon, Yoon, van der Schaar: Measuring the quality of synthetic data (2018), arXiv:1806.11345; Herranz, "
        "Matwin, Nin, Torra: Classifying data from protected datasets (2010), doi:10.1016/j.cose.2010.05.005"
    )

    targets: tuple[str, ...] | None = None
    """Columns to predict. Left out: the sensitive columns, or the last column when there are none."""
    model: Literal["tree", "boosting", "linear"] = "tree"
    """A decision tree, gradient boosting (stronger, slower), or a linear (logistic) regression."""
    rows: Annotated[int, Field(ge=100)] = 20_000
    """Most rows for training, and for testing."""
    test: Annotated[float, Field(gt=0.05, lt=0.95)] = 0.3
    """Share of people kept for testing."""

    def compute(self, pair: ReleasePair, rng: Rng, progress: Progress = SILENT) -> MeasureResult:
        need_sklearn(self.part_name())
        names = comparable(pair)
        targets = [t for t in self._targets(pair, names) if pair.original.table.column(t).drop_nulls().n_unique() > 1]
        if not targets or len(names) < 2:
            raise NotApplicable("There is no target column that varies in the original and is in the release.")
        random = rng.generator
        who, whose = persons(pair)
        held = random.random(int(max(who.max(), whose.max())) + 1) < self.test
        found, detail = {}, {}
        bootstrap = []
        with progress.task("learning", len(targets)) as tick, modest_threads(self.rows):
            for target in targets:
                others = tuple(name for name in names if name != target)
                before, after = features(pair, others, random, one_hot=self.model == "linear")
                wanted, masked, classes = self._labels(pair, target, random)
                sides = (before, wanted, ~held[who]), (after, masked, ~held[whose])
                test = _some(held[who] & ~np.isnan(wanted), self.rows, random)
                scores = []
                seed = int(random.integers(2**31))
                for design, labels, usable in sides:
                    train = _some(usable & ~np.isnan(labels), self.rows, np.random.default_rng(seed))
                    scores.append(self._predict(design[train], labels[train], before[test], classes, seed))
                if len(test) < 10 or any(score is None for score in scores):
                    tick(1)
                    continue
                real, release = (_score(wanted[test], score, classes) for score in scores)
                found[target] = real - release
                detail[target] = {"original": real, "release": release, "score": "AUC" if classes else "R2"}
                draws = (random.integers(len(test), size=len(test)) for _ in range(40))
                bootstrap.append(
                    [
                        _score(wanted[test][d], scores[0][d], classes) - _score(wanted[test][d], scores[1][d], classes)
                        for d in draws
                    ]
                )
                tick(1)
        if not found:
            raise NotApplicable("No target had enough rows to train on and to test on.")
        value = max(0.0, float(np.mean(list(found.values()))))
        spread = float(np.std(np.mean(bootstrap, axis=0), ddof=1))
        return MeasureResult(
            measure=self.part_name(),
            value=value,
            columns=found,
            low=max(0.0, value - 1.96 * spread),
            high=value + 1.96 * spread,
            detail=detail,
        )

    def _targets(self, pair: ReleasePair, names: tuple[str, ...]) -> tuple[str, ...]:
        if self.targets is None:
            return tuple(name for name in pair.original.sensitive if name in names) or names[-1:]
        pair.original.table.require(self.targets)
        return tuple(name for name in self.targets if name in names)

    def _labels(self, pair: ReleasePair, target: str, random: np.random.Generator) -> tuple[Floats, Floats, int]:
        if (
            pair.original.kind(target) in (Kind.INTEGER, Kind.NUMBER)
            and pair.original.table.column(target).n_unique() > 10
        ):
            return (*numbers(pair, target), 0)
        both = coded(pair, target, 20, random)
        return both.before.astype(np.float64), both.after.astype(np.float64), both.size

    def _predict(self, design: Floats, labels: Floats, test: Floats, classes: int, seed: int) -> Any:
        """Predicted values, or a column of probabilities per class; None where there is nothing to learn from."""
        if len(labels) < 10:
            return None
        if classes == 0:
            return self._untrained(seed, classes=0).fit(design, labels).predict(test)
        seen = np.unique(labels).astype(int)
        scores = np.zeros((len(test), classes))
        if len(seen) == 1:
            scores[:, seen[0]] = 1.0
            return scores
        model = self._untrained(seed, classes=classes).fit(design, labels.astype(int))
        scores[:, seen] = model.predict_proba(test)
        return scores

    def _untrained(self, seed: int, *, classes: int) -> Any:
        """The model, for classes or (0) for numbers."""
        from sklearn import ensemble, linear_model, tree

        kind = "Classifier" if classes else "Regressor"
        match self.model:
            case "boosting":
                boosted = getattr(ensemble, f"HistGradientBoosting{kind}")
                return boosted(max_iter=40 if classes else 60, early_stopping=False, random_state=seed)
            case "tree":
                return getattr(tree, f"DecisionTree{kind}")(min_samples_leaf=10, random_state=seed)
            case "linear":
                return linear_model.LogisticRegression(max_iter=200) if classes else linear_model.Ridge(alpha=1.0)


def _some(usable: Any, most: int, random: np.random.Generator) -> Ints:
    rows = np.flatnonzero(usable)
    return rows[take(len(rows), most, random)]


def _score(truth: Floats, predicted: Floats, classes: int) -> float:
    if classes == 0:
        total = float(((truth - truth.mean()) ** 2).sum())
        return max(-1.0, 1 - float(((truth - predicted) ** 2).sum()) / total) if total > 0 else 0.0
    areas, weights = [], []
    for code in np.unique(truth).astype(int):
        hit = (truth == code).astype(np.int64)
        if 0 < hit.sum() < len(hit):
            areas.append(auc(hit, predicted[:, code]))
            weights.append(int(hit.sum()))
    return float(np.average(areas, weights=weights)) if areas else 0.5
