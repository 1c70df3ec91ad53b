"""The exact auditor at scale: every question of a sequence is decided, incrementally, and timed.

    python benchmarks/audit.py [--record]  all of the following
    python benchmarks/audit.py ranges      one million people, 100 ranges of one column, 10 values
    python benchmarks/audit.py boxes       one million people, 100 boxes over two columns, 10 values
    python benchmarks/audit.py crossing    1,200 people, random crossing questions: hundreds of tiny atoms, every pair

Prints CPU seconds for all decisions and for the slowest one. No peer has an exact auditor to compare with.
"""

from __future__ import annotations

import sys
import time
from collections import Counter

import numpy as np
import numpy.typing as npt
from record import Figures

from sfumato.query.auditing.k_assign import AssignAuditor

FIGURES = Figures(
    "audit",
    "decisions",
    {"problem": "", "atoms": ",", "seconds": ".1f", "slowest": ".2f", "decisions": ""},
    {"seconds": "CPU seconds, all decisions", "slowest": "slowest decision"},
)


def play(name: str, auditor: AssignAuditor, questions: list[npt.NDArray[np.bool_]], *, full: bool = False) -> None:
    """Ask all questions in turn; answered ones stay, refused ones do not."""
    decided: Counter[str] = Counter()
    slowest, start = 0.0, time.process_time()
    for people in questions:
        before = time.process_time()
        judgement = auditor.judge(people, full=full)
        if judgement.safe:
            auditor.accept(judgement)
        slowest = max(slowest, time.process_time() - before)
        decided["answered" if judgement.safe else "refused" if judgement.certain else "out of effort"] += 1
    total = time.process_time() - start
    words = ", ".join(f"{count} {what}" for what, count in decided.items())
    FIGURES.add(problem=name, atoms=auditor.crowd.atoms, seconds=total, slowest=slowest, decisions=words)


def people(count: int, values: int, rng: np.random.Generator, skew: float = 1.0) -> npt.NDArray[np.int64]:
    weights = 1 / np.arange(1, values + 1) ** skew
    return rng.choice(values, count, p=weights / weights.sum())


def ranges(columns: int, k: int, skew: float) -> None:
    rng = np.random.default_rng(5)
    count = 1_000_000
    table = [rng.integers(0, 1_000_000 if columns == 1 else 1000, count) for _ in range(columns)]
    auditor = AssignAuditor(people(count, 10, rng, skew), values=10, k=k)
    questions = []
    for _ in range(100):
        inside = np.ones(count, np.bool_)
        for column in table:
            low, high = np.sort(rng.integers(0, column.max() + 1, 2))
            inside &= (column >= low) & (column <= high)
        questions.append(inside)
    shape = "ranges of one column" if columns == 1 else "boxes over two columns"
    play(f"{count:,} people, 100 {shape}, 10 values (skew {skew:g}), k = {k}", auditor, questions)


def crossing() -> None:
    for count, asked, values in ((300, 8, 5), (600, 9, 5), (1200, 10, 5)):
        rng = np.random.default_rng(7)
        auditor = AssignAuditor(people(count, values, rng), values=values, k=2, effort=60)
        questions = [rng.random(count) < 0.5 for _ in range(asked)]
        play(f"{count:,} people, {asked} random queries, {values} values, every pair", auditor, questions, full=True)
    for side, partitions in ((24, 2), (10, 3), (13, 3)):
        rng = np.random.default_rng(8)
        i, j = np.divmod(np.arange(side * side), side)
        lines = [i, j, (i + j) % side][:partitions]
        auditor = AssignAuditor(people(side * side, 5, rng), values=5, k=2, effort=60)
        questions = [line == number for line in lines for number in range(side)]
        play(f"{side * side} people, {partitions} crossing partitions, 5 values, k = 2", auditor, questions)


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["ranges", "boxes", "crossing"]
    if "ranges" in chosen:
        ranges(1, 3, 1.0)
        ranges(1, 10, 2.0)
    if "boxes" in chosen:
        ranges(2, 3, 1.0)
    if "crossing" in chosen:
        crossing()
