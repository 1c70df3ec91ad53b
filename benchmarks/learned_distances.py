"""Learned distances on 400 microaggregated Census records: percent linked and seconds, per family and sample.

    python benchmarks/learned_distances.py [samples]

The literature reports 3 s to 169,050 s for the same families by a commercial mixed-integer solver.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "golden"))
from test_learned_distances import CASES, extract, problem, right

from tacit.attack.learning import Form, learn


def main(samples: int = 1) -> None:
    for name in CASES:
        for _ in range(samples):
            original, masked = extract(name)
            gap = original - masked
            values, vectors = np.linalg.eigh(np.cov(gap, rowvar=False))
            turn = vectors / np.sqrt(np.maximum(values, 1e-12 * values[-1]))
            whitened = right(original @ turn, masked @ turn)
            print(f"{name} plain {right(original, masked) / 4:.2f} mahalanobis {whitened / 4:.2f}")
            weights = None
            for shape in ("weighted", "owa", "choquet", "bilinear"):
                form = Form(shape=shape, width=original.shape[1])
                task = problem(form, original, masked)
                begin = [1 / np.maximum(gap.var(axis=0), 1e-12)] if weights is None else [form.from_weights(weights)]
                if shape == "bilinear":
                    begin.append(np.linalg.pinv(np.cov(gap, rowvar=False))[np.triu_indices(form.width)])
                started, used = time.perf_counter(), time.process_time()
                lesson = learn(form, task, np.random.default_rng(0), starts=tuple(begin))
                weights = lesson.theta if weights is None else weights
                wall, cpu = time.perf_counter() - started, time.process_time() - used
                print(f"  {shape:9s} {lesson.linked / 4:6.2f} %   {wall:5.2f} s wall, {cpu:5.2f} s CPU")


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:]))
