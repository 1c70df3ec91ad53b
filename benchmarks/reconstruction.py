"""Reconstruction at scale: how many bits come out of noisy sums, and at what cost.

    python benchmarks/reconstruction.py [--record]

10,000 bits from 40,000 random subsets with noise up to half the square root of n; four million bits from chosen
(Hadamard) subsets by one transform; the linear program beside least squares at equal noise on a table it can handle.
"""

from __future__ import annotations

import time

import numpy as np
from record import Figures

from sfumato.attacks.query._solvers import hadamard, least_squares, linear_program, transform
from sfumato.query.policy.subsets import random_subsets, subset_sums


def main() -> None:
    forms = {"method": "", "problem": "", "seconds": ".2f", "wrong": ".1%"}
    figures = Figures("reconstruction", "solvers", forms, {"seconds": "CPU seconds"})
    rng = np.random.default_rng(2)
    least_squares(random_subsets(8, 8, rng), np.zeros(8), 8, rounds=1)  # compile
    transform(np.zeros(1 << 14))

    people, asked = 10_000, 40_000
    truth = rng.integers(0, 2, people)
    subsets = random_subsets(asked, people, rng)
    answers = subset_sums(subsets, truth) + rng.uniform(-1, 1, asked) * 0.5 * people**0.5
    start = time.process_time()
    guess = least_squares(subsets, answers, people) > 0.5
    spent = time.process_time() - start
    problem = f"{people:,} bits, {asked:,} random groups ({subsets.nbytes / 1e6:.0f} MB), noise up to 0.5√n"
    figures.add(method="least squares", problem=problem, seconds=spent, wrong=(guess != truth).mean())

    size = 1 << 22
    secret = rng.integers(0, 2, size).astype(np.float32)
    exact = (transform(secret) + secret.sum()) / 2
    for share in (0.1, 0.5):
        told = exact + rng.uniform(-1, 1, size).astype(np.float32) * np.float32(share * size**0.5)
        start = time.process_time()
        guess = hadamard(told, size) > 0.5
        spent = time.process_time() - start
        problem = f"{size:,} bits, as many chosen groups, noise up to {share}√n"
        figures.add(method="Hadamard", problem=problem, seconds=spent, wrong=(guess != secret).mean())

    people = 256
    truth = rng.integers(0, 2, people)
    subsets = random_subsets(4 * people, people, rng)
    answers = subset_sums(subsets, truth) + rng.uniform(-1, 1, 4 * people) * 0.5 * people**0.5
    for solve in (least_squares, linear_program):
        start = time.process_time()
        guess = solve(subsets, answers, people) > 0.5
        spent = time.process_time() - start
        problem = f"{people} bits, {4 * people:,} random groups, noise up to 0.5√n"
        method = solve.__name__.replace("_", " ")
        figures.add(method=method, problem=problem, seconds=spent, wrong=(guess != truth).mean())


if __name__ == "__main__":
    main()
