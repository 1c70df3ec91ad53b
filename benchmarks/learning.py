"""Private learning on UCI Adult (official split), and diffprivlib on the same rows: area under the ROC curve.

python benchmarks/learning.py FOLDER [--peer PYTHON] [--record]
python benchmarks/learning.py --regression [--record]       # R2 of linear regression on the Census file of the tests

FOLDER holds train.csv.gz and test.csv.gz of UCI Adult. PYTHON is an interpreter with diffprivlib, which does not import
beside a current scikit-learn; without it the peer is left out. Ten fits each, delta = 1e-6 (diffprivlib: delta = 0).
diffprivlib gets the same bounds: numbers scaled to 0 .. 1, categories as indicators, and the largest norm of a row.
Its logistic regression runs with its default C, its trees with their default depth.
k-means: eight clusters of the six numbers, scaled to -1 .. 1; the inertia relative to that of scikit-learn. PCA: three
components of the six numbers; the variance that they keep relative to the best three.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import Figures
from sklearn.cluster import KMeans as PlainKMeans
from sklearn.linear_model import LinearRegression as PlainRegression
from sklearn.metrics import roc_auc_score

from sfumato import learning

BOUNDS = {
    "age": (17, 90), "fnlwgt": (0, 1_500_000), "education-num": (1, 16), "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_500), "hours-per-week": (1, 99),
}  # fmt: skip
RUNS = 10
EPSILONS = (0.1, 1.0, 10.0)
CLASSIFIERS = ("LogisticRegression", "AdditiveModel", "NaiveBayes", "DecisionTree", "RandomForest")

PEER = """
import json, sys, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
from diffprivlib import models
from sklearn.metrics import roc_auc_score
data = np.load(sys.argv[1])
X, y, T, t, N = (data[k] for k in "XyTtN")
norm, d = float(data["norm"]), X.shape[1]
trees = {"bounds": (np.zeros(d), np.ones(d)), "classes": [0, 1]}
make = {
    "LogisticRegression": lambda e: models.LogisticRegression(epsilon=e, data_norm=norm, max_iter=400),
    "NaiveBayes": lambda e: models.GaussianNB(epsilon=e, bounds=(np.zeros(d), np.ones(d))),
    "DecisionTree": lambda e: models.DecisionTreeClassifier(epsilon=e, **trees),
    "RandomForest": lambda e: models.RandomForestClassifier(epsilon=e, **trees),
}
def record(name, epsilon, runs, cpu):
    print(json.dumps([name, epsilon, runs, cpu]), flush=True)
for epsilon in map(float, sys.argv[3:]):
    for name, build in make.items():
        found, start = [], time.process_time()
        for _ in range(int(sys.argv[2])):
            found.append(roc_auc_score(t, build(epsilon).fit(X, y).predict_proba(T)[:, 1]))
        record(name, epsilon, found, (time.process_time() - start) / len(found))
    box = (-np.ones(6), np.ones(6))
    found, start = [], time.process_time()
    for _ in range(int(sys.argv[2])):
        centres = models.KMeans(8, epsilon=epsilon, bounds=box).fit(N).cluster_centers_
        found.append(float(((N[:, None] - centres) ** 2).sum(axis=2).min(axis=1).sum() / data["inertia"]))
    record("KMeans", epsilon, found, (time.process_time() - start) / len(found))
    found, start = [], time.process_time()
    for _ in range(int(sys.argv[2])):
        parts = models.PCA(3, epsilon=epsilon, bounds=box, data_norm=6**0.5).fit(N).components_
        found.append(float(np.trace(parts @ np.cov(N.T) @ parts.T) / data["kept"]))
    record("PCA", epsilon, found, (time.process_time() - start) / len(found))
"""


def interval(figures: list[float]) -> dict[str, float]:
    """Mean and the half width of its 95 % interval (Student, nine degrees of freedom)."""
    spread = float(np.std(figures, ddof=1)) if len(figures) > 1 else 0.0
    return {"mean": float(np.mean(figures)), "half": 2.262 * spread / len(figures) ** 0.5}


def timed(fit: Callable[[], float], runs: int = RUNS) -> tuple[list[float], float]:
    start = time.process_time()
    found = [fit() for _ in range(runs)]
    return found, (time.process_time() - start) / runs


def main(folder: Path, peer: str | None) -> None:
    train, test = (pl.read_csv(folder / f"{part}.csv.gz") for part in ("train", "test"))
    categories = {n: sorted(train[n].unique()) for n in train.columns if n not in BOUNDS and n != "income"}
    labels, truth = ((part["income"].str.starts_with(">50K")).to_numpy() for part in (train, test))
    train, test = train.drop("income"), test.drop("income")
    low, high = np.array(list(BOUNDS.values()), dtype=float).T
    numbers = 2 * (train.select(list(BOUNDS)).to_numpy() - low) / (high - low) - 1
    inertia = float(PlainKMeans(8, n_init=10, random_state=0).fit(numbers).inertia_)
    kept = float(np.sort(np.linalg.eigvalsh(np.cov(numbers.T)))[-3:].sum())
    table = Figures(
        "learning", "adult",
        {"estimator": "", "epsilon": "g", "measure": "", "mean": ".4f", "half": ".4f", "seconds": ".2f",
         "peer": ".4f", "peer_half": ".4f", "peer_seconds": ".2f"},
        {"epsilon": "ε", "half": "±", "seconds": "CPU s", "peer": "diffprivlib", "peer_half": "± ",
         "peer_seconds": "CPU s "},
    )  # fmt: skip
    theirs = {} if peer is None else _peer(peer, train, test, labels, truth, categories, numbers, inertia, kept)
    for epsilon in EPSILONS:
        private: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6}
        public = {**private, "bounds": BOUNDS, "categories": categories, "classes": [False, True]}
        boxed = {**private, "bounds": (-1, 1)}
        covariance = np.cov(numbers.T)

        def classify(name: str, public: dict[str, Any] = public) -> float:
            model = getattr(learning, name)(**public).fit(train, labels)
            return float(roc_auc_score(truth, model.predict_proba(test)[:, 1]))

        def cluster(boxed: dict[str, Any] = boxed) -> float:
            return float(-learning.KMeans(8, **boxed).fit(numbers).score(numbers) / inertia)

        def project(boxed: dict[str, Any] = boxed, covariance: Any = covariance) -> float:
            parts = learning.PCA(3, **boxed).fit(numbers).components_
            return float(np.trace(parts @ covariance @ parts.T) / kept)

        tasks: list[tuple[str, str, Callable[[], float]]] = [
            *((name, "AUC", lambda name=name: classify(name)) for name in CLASSIFIERS),  # type: ignore[misc]
            ("KMeans", "inertia ratio", cluster),
            ("PCA", "variance kept", project),
        ]
        for name, measure, fit in tasks:
            found, seconds = timed(fit)
            other: dict[str, float] = {}
            if (name, epsilon) in theirs:
                figures, cpu = theirs[name, epsilon]
                peers = interval(figures)
                other = {"peer": peers["mean"], "peer_half": peers["half"], "peer_seconds": cpu}
            table.add(estimator=name, epsilon=epsilon, measure=measure, seconds=seconds, **interval(found), **other)


def regression() -> None:
    """Share of the variance of FICA in the Census file (1,080 rows, 10 features) that linear regression explains."""
    rows = pl.read_csv(Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro" / "CASCrefmicrodata.csv")
    target, features = rows["FICA"].to_numpy().astype(float), rows.select(rows.columns[:10]).to_numpy().astype(float)
    bounds = [(0.0, 10.0 ** np.ceil(np.log10(high))) for high in features.max(axis=0)]
    exact = PlainRegression().fit(features, target).score(features, target)
    forms = {"epsilon": "g", "runs": "", "mean": ".3f", "least": ".3f", "exact": ".3f"}
    table = Figures("learning", "regression", forms, {"epsilon": "ε", "mean": "mean R²", "least": "least R²",
                                                      "exact": "least squares"})  # fmt: skip
    for epsilon in (0.1, 0.3, 1.0, 3.0, 10.0):
        model = learning.LinearRegression(epsilon=epsilon, delta=1e-6, bounds=bounds, target_bounds=(0, 10_000))
        found = [float(model.fit(features, target).score(features, target)) for _ in range(2 * RUNS)]
        table.add(epsilon=epsilon, runs=2 * RUNS, mean=float(np.mean(found)), least=min(found), exact=exact)


def _peer(
    python: str, train: pl.DataFrame, test: pl.DataFrame, labels: Any, truth: Any, categories: dict[str, list[str]],
    numbers: Any, inertia: float, kept: float,
) -> dict[tuple[str, float], tuple[list[float], float]]:  # fmt: skip
    """The peer's figures, from a process of its own."""

    def coded(frame: pl.DataFrame) -> Any:
        columns = [
            np.eye(len(categories[name]) + 1)[
                [categories[name].index(v) if v in categories[name] else -1 for v in frame[name].to_list()]
            ]
            if name in categories
            else ((frame[name].to_numpy() - BOUNDS[name][0]) / (BOUNDS[name][1] - BOUNDS[name][0])).clip(0, 1)[:, None]
            for name in frame.columns
        ]
        return np.hstack(columns)

    place = Path("/tmp") / "sfumato-learning-peer.npz"
    np.savez(
        place, X=coded(train), y=labels.astype(int), T=coded(test), t=truth.astype(int), N=numbers,
        norm=train.width**0.5, inertia=inertia, kept=kept,
    )  # fmt: skip
    words = [python, "-c", PEER, str(place), str(RUNS), *map(str, EPSILONS)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    place.unlink()
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {(name, epsilon): (figures, cpu) for name, epsilon, figures, cpu in found}


if __name__ == "__main__":
    words = sys.argv[1:]
    chosen = words[words.index("--peer") + 1] if "--peer" in words else None
    if "--regression" in words:
        regression()
    else:
        main(Path(words[0]), chosen)
