"""Exact distance linkage of two large files, ours against scikit-learn's brute force, in one run.

    python benchmarks/linkage.py [rows] [columns] [noise]

Prints seconds, the share linked correctly, and the ratio. Both are exact.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.neighbors import NearestNeighbors

from sfumato.attacks.nearest_neighbours import nearest


def main(rows: int = 100_000, columns: int = 10, noise: float = 0.3) -> None:
    draw = np.random.default_rng(1)
    original = draw.normal(size=(rows, columns))
    masked = original + noise * draw.normal(size=(rows, columns))
    nearest(original[:10], masked[:10], draw)  # compile
    started = time.perf_counter()
    found = nearest(original, masked, draw)
    ours = time.perf_counter() - started
    truth = np.arange(rows)
    print(f"sfumato     {ours:8.1f} s   linked {np.mean(found.row == truth):.4f}")
    sample = min(rows, 5_000)
    started = time.perf_counter()
    peer = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(masked)
    distance, _ = peer.kneighbors(original[:sample])
    theirs = (time.perf_counter() - started) * rows / sample
    agree = np.mean(np.isclose(distance[:, 0] ** 2, found.distance[:sample], rtol=1e-6))
    print(f"sklearn   {theirs:8.1f} s   (from {sample} queries)   same distances {agree:.4f}")
    print(f"ratio     {theirs / ours:8.1f}")
    assert agree == 1.0, "the two exact searches disagree"


if __name__ == "__main__":
    main(*(kind(value) for kind, value in zip((int, int, float), sys.argv[1:], strict=False)))
