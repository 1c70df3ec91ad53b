"""Learned distances on 400 microaggregated Census records: mean percent linked and seconds, per family and case.

    python benchmarks/learned_distances.py [samples] [--record]
    python benchmarks/learned_distances.py scales [samples]

``scales`` only compares the plain distance on groups formed on raw columns with that on groups of standardized columns.

The literature reports 3 s to 169,050 s for the same families by a commercial mixed-integer solver.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from record import Figures

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "golden"))
from test_learned_distances import CASES, extract, problem, right

from sfumato.attacks.record_linkage.learned_linkage.distances import Form
from sfumato.attacks.record_linkage.learned_linkage.fit import learn

FAMILIES = ("weighted", "owa", "choquet", "bilinear")
PUBLISHED = {
    "M4-33": {"plain": 84.0, "Mahalanobis": 94.0, "weighted": 95.5, "choquet": 95.75, "bilinear": 96.75},
    "M5-38": {"plain": 39.75, "Mahalanobis": 88.25, "weighted": 90.5, "choquet": 91.25, "bilinear": 92.25},
}
"""Percent linked on one other extract of 400 records (Abril, Navarro-Arribas and Torra 2012)."""
TITLES = {"weighted": "weighted mean", "owa": "OWA", "choquet": "Choquet"}


def one(name: str, seed: int) -> list[float]:
    """Percent linked by the plain and Mahalanobis distances and by each family, then CPU seconds of each family."""
    original, masked = extract(name, seed=seed)
    gap = original - masked
    values, vectors = np.linalg.eigh(np.cov(gap, rowvar=False))
    turn = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
    linked, seconds = [right(original, masked) / 4, right(original @ turn, masked @ turn) / 4], []
    weights = None
    for shape in FAMILIES:
        form = Form(shape=shape, width=original.shape[1])
        task = problem(form, original, masked)
        begin = [1 / np.maximum(gap.var(axis=0), 1e-12)] if weights is None else [form.from_weights(weights)]
        if shape == "bilinear":
            begin.append(np.linalg.pinv(np.cov(gap, rowvar=False))[np.triu_indices(form.width)])
        used = time.process_time()
        lesson = learn(form, task, np.random.default_rng(0), starts=tuple(begin))
        seconds.append(time.process_time() - used)
        weights = lesson.theta if weights is None else weights
        linked.append(lesson.linked / 4)
    return linked + seconds


def scales(samples: int = 10) -> None:
    """Percent linked by the plain distance where groups were formed on raw and on standardized columns."""
    for name in CASES:
        raw, standardized = (
            np.mean([right(*extract(name, seed=seed, standardize=chosen)) / 4 for seed in range(samples)])
            for chosen in (False, True)
        )
        print(f"{name:8s} raw {raw:6.2f}  standardized {standardized:6.2f}", flush=True)


def main(samples: int = 10) -> None:
    one("M4-33", 0)  # compiles
    names = ("plain", "Mahalanobis", *FAMILIES)
    seconds = "CPU seconds: weighted, OWA, Choquet, bilinear"
    figures = Figures("learned_distances", "census", {"case": ""} | dict.fromkeys((*names, seconds), ""), TITLES)
    print(f"means over {samples} random extracts of 400 records: percent linked, then CPU seconds to learn")
    for name in CASES:
        rows = np.array([one(name, seed) for seed in range(samples)])
        mean, printed = rows.mean(axis=0), PUBLISHED.get(name, {})
        shares = zip(names, mean, strict=False)
        cells = {key: f"{share:.2f}" + (f" ({printed[key]:.2f})" if key in printed else "") for key, share in shares}
        figures.add(case=name, **cells, **{seconds: ", ".join(f"{used:.2f}" for used in mean[len(names) :])})
        above = [(rows[:, place] > rows[:, 2]).sum() for place in (4, 5)]
        print(f"{'':8s}above the weighted mean: Choquet in {above[0]}, bilinear in {above[1]} of {samples}", flush=True)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["scales"]:
        scales(*map(int, given[1:]))
    else:
        main(*map(int, given))
