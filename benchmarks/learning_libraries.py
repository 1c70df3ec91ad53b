"""Private classifiers of several libraries at epsilon 1: area under the ROC curve of test rows.

python benchmarks/learning_libraries.py CREDIT [--adult FOLDER] [--peer PYTHON] [--opacus PYTHON] [--record]

CREDIT is creditcard_int.csv.gz of the genetic benchmark (UCI default of credit card clients, recoded; its 10
categories; a random third is tested). The second data set is the breast cancer file that scikit-learn ships (30
numbers; a random third is tested). FOLDER holds train.csv.gz and test.csv.gz of UCI Adult (official split). PYTHON has
diffprivlib and interpret-core (--peer), or opacus (--opacus); without one its lines are left out. Ten fits each, delta
is 1e-6 (diffprivlib: 0). All get the same public bounds and categories, as indicators and numbers scaled to 0 .. 1.
"tuned" means that the peer's parameters were chosen by the area on the test rows, which favours it; the other
parameters of all libraries are their defaults, and those of Opacus are in the script below.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from record import Figures
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from learning import BOUNDS, interval
from sfumato import learning

RUNS = 10
OURS = ("LogisticRegression", "AdditiveModel", "NeuralNetwork", "NaiveBayes", "DecisionTree", "RandomForest")
CANCER = (
    *(30, 40, 200, 2600, 0.2, 0.4, 0.5, 0.3, 0.4, 0.1, 3, 5, 25, 600, 0.04, 0.15, 0.4, 0.06, 0.1, 0.03),
    *(40, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25),
)
"""Upper bounds of the 30 measurements; the lower bounds are 0."""

HEAD = """
import json, sys, time, warnings
import numpy as np
warnings.filterwarnings("ignore")
from sklearn.metrics import roc_auc_score
data = np.load(sys.argv[1], allow_pickle=False)
X, y, T, t, R, S, kinds, highs = (data[k] for k in ("X", "y", "T", "t", "R", "S", "kinds", "highs"))
norm, d = float(data["norm"]), X.shape[1]
def area(model, test=T):
    return roc_auc_score(t, model.predict_proba(test)[:, 1])
def record(library, name, build, runs=int(sys.argv[2]), rows=X, test=T):
    start = time.process_time()
    found = [area(build().fit(rows, y), test) for _ in range(runs)]
    print(json.dumps([library, name, found, (time.process_time() - start) / runs]), flush=True)
def best(settings, build):
    return max(settings, key=lambda one: np.mean([area(build(**one)().fit(X, y)) for _ in range(2)]))
"""
PEER = (
    HEAD
    + """
from diffprivlib import models
from interpret.privacy import DPExplainableBoostingClassifier
trees = {"epsilon": 1.0, "bounds": (np.zeros(d), np.ones(d)), "classes": [0, 1]}
def lr(C=1.0):
    return lambda: models.LogisticRegression(epsilon=1.0, data_norm=norm, max_iter=400, C=C)
def tree(**own):
    return lambda: models.DecisionTreeClassifier(**trees, **own)
def forest(**own):
    return lambda: models.RandomForestClassifier(**trees, **own)
record("diffprivlib", "LogisticRegression", lr())
record("diffprivlib, tuned", "LogisticRegression", lr(**best([{"C": c} for c in (0.01, 0.1, 10.0)], lr)))
record("diffprivlib", "GaussianNB", lambda: models.GaussianNB(epsilon=1.0, bounds=(np.zeros(d), np.ones(d))))
depths = [{"max_depth": m} for m in (2, 4, 8)]
record("diffprivlib, tuned", "DecisionTreeClassifier", tree(**best(depths, tree)))
sizes = [{"max_depth": m, "n_estimators": n} for m in (4, 8) for n in (5, 20)]
record("diffprivlib, tuned", "RandomForestClassifier", forest(**best(sizes, forest)))
kind = ["nominal" if one else "continuous" for one in kinds]
limits = {i: (0.0, float(high)) for i, (one, high) in enumerate(zip(kinds, highs)) if not one}
def ebm():
    return DPExplainableBoostingClassifier(epsilon=1.0, delta=1e-6, feature_types=kind, privacy_bounds=limits, n_jobs=1)
record("interpret (DP-EBM)", "DPExplainableBoostingClassifier", ebm, rows=R, test=S)
"""
)
OPACUS = (
    HEAD
    + """
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
class Logistic:
    def fit(self, X, y):
        rows = TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
        loader = DataLoader(rows, batch_size=max(64, len(X) // 16), shuffle=True)
        model = torch.nn.Linear(X.shape[1], 1)
        steps = torch.optim.Adam(model.parameters(), lr=0.05)
        engine = PrivacyEngine()
        model, steps, loader = engine.make_private_with_epsilon(
            module=model, optimizer=steps, data_loader=loader, target_epsilon=1.0, target_delta=1e-6, epochs=12,
            max_grad_norm=1.0)
        loss = torch.nn.BCEWithLogitsLoss()
        for _ in range(12):
            for a, b in loader:
                if len(a) == 0:
                    continue
                steps.zero_grad()
                loss(model(a)[:, 0], b).backward()
                steps.step()
        self.model = model
        return self
    def predict_proba(self, X):
        with torch.no_grad():
            p = torch.sigmoid(self.model(torch.tensor(X, dtype=torch.float32))[:, 0]).numpy()
        return np.column_stack([1 - p, p])
record("Opacus", "logistic regression", Logistic)
"""
)


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data set with its public domain."""

    name: str
    train: pl.DataFrame
    test: pl.DataFrame
    labels: Any
    truth: Any
    bounds: dict[str, tuple[float, float]]
    categories: dict[str, list[Any]]

    def coded(self, frame: pl.DataFrame, *, indicators: bool) -> Any:
        """Numbers scaled to 0 .. 1 and categories as indicators, or numbers from 0 on and codes."""
        columns = []
        for name in frame.columns:
            if name in self.categories:
                known = {value: code for code, value in enumerate(self.categories[name])}
                codes = [known.get(value, len(known)) for value in frame[name].to_list()]
                columns.append(np.eye(len(known) + 1)[codes] if indicators else np.array(codes, dtype=float)[:, None])
            else:
                low, high = self.bounds[name]
                moved = np.clip(frame[name].to_numpy().astype(float), low, high) - low
                columns.append((moved / (high - low) if indicators else moved)[:, None])
        return np.hstack(columns)

    def save(self, path: Path) -> None:
        names = self.train.columns
        np.savez(
            path, X=self.coded(self.train, indicators=True), T=self.coded(self.test, indicators=True),
            R=self.coded(self.train, indicators=False), S=self.coded(self.test, indicators=False),
            y=self.labels.astype(int), t=self.truth.astype(int), norm=len(names) ** 0.5,
            kinds=[name in self.categories for name in names],
            highs=[0.0 if n in self.categories else self.bounds[n][1] - self.bounds[n][0] for n in names],
        )  # fmt: skip


def adult(folder: Path) -> Task:
    train, test = (pl.read_csv(folder / f"{part}.csv.gz") for part in ("train", "test"))
    categories = {n: sorted(train[n].unique()) for n in train.columns if n not in BOUNDS and n != "income"}
    labels, truth = ((part["income"].str.starts_with(">50K")).to_numpy() for part in (train, test))
    bounds = {name: (float(low), float(high)) for name, (low, high) in BOUNDS.items()}
    own: dict[str, Any] = {"bounds": bounds, "categories": categories, "labels": labels, "truth": truth}
    return Task(name="Adult", train=train.drop("income"), test=test.drop("income"), **own)


def split(name: str, frame: pl.DataFrame, labels: Any, **public: Any) -> Task:
    order = np.random.default_rng(0).permutation(frame.height)
    cut = 2 * frame.height // 3
    return Task(
        name=name, train=frame[order[:cut]], test=frame[order[cut:]], labels=labels[order[:cut]],
        truth=labels[order[cut:]], **public,
    )  # fmt: skip


def credit(path: Path) -> Task:
    frame = pl.read_csv(path)
    label = frame["default-payment-next-month"].to_numpy() == 1
    names = ["SEX", "EDUCATION", "MARRIAGE", "AGE", *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6))]
    frame = frame.select(names)
    categories = {name: list(range(int(frame[name].max()) + 1)) for name in names}  # type: ignore[arg-type]
    return split("credit", frame, label, bounds={}, categories=categories)


def cancer() -> Task:
    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    bounds = {name: (0.0, float(high)) for name, high in zip(names, CANCER, strict=True)}
    return split("breast cancer", pl.DataFrame(data.data, schema=names), data.target == 1, bounds=bounds, categories={})


def main(tasks: list[Task], peers: list[tuple[str, str]]) -> None:
    table = Figures(
        "learning_libraries", "auc",
        {"data": "", "library": "", "estimator": "", "mean": ".4f", "half": ".4f", "seconds": ".2f"},
        {"data": "data set", "mean": "AUC", "half": "±", "seconds": "CPU s"},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number, task in enumerate(tasks):
            place = Path(folder) / f"{number}.npz"
            task.save(place)
            running.append([
                subprocess.Popen([python, "-c", text, str(place), str(RUNS)], stdout=subprocess.PIPE, text=True)
                for python, text in peers
            ])  # fmt: skip
        for task, others in zip(tasks, running, strict=True):
            public: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "bounds": task.bounds or None}
            public |= {"categories": task.categories or None, "classes": [False, True]}
            for name in OURS:
                start, found = time.process_time(), []
                for _ in range(RUNS):
                    model = getattr(learning, name)(**public).fit(task.train, task.labels)
                    found.append(float(roc_auc_score(task.truth, model.predict_proba(task.test)[:, 1])))
                spent = (time.process_time() - start) / RUNS
                table.add(data=task.name, library="sfumato", estimator=name, seconds=spent, **interval(found))
            for process in others:
                lines = process.communicate()[0].splitlines()
                if process.returncode:
                    raise SystemExit("a peer failed; see its message above")
                for library, name, figures, cpu in map(json.loads, lines):
                    table.add(data=task.name, library=library, estimator=name, seconds=cpu, **interval(figures))


if __name__ == "__main__":
    words = sys.argv[1:]
    flags = (("--peer", PEER), ("--opacus", OPACUS))
    chosen = [(words[words.index(flag) + 1], text) for flag, text in flags if flag in words]
    tasks = [credit(Path(words[0])), cancer()]
    main([*tasks, *([adult(Path(words[words.index("--adult") + 1]))] if "--adult" in words else [])], chosen)
