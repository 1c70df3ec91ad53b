"""Probabilistic linkage of two files with blocking, with misspelt names and noise.

    python benchmarks/probabilistic.py [rows] [blocks] [--record]

First four numbers with noise and a category, then a misspelt name beside a number: CPU seconds,
and the share of people linked.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import polars as pl
from record import Figures

from sfumato.attacks import View
from sfumato.attacks.record_linkage.probabilistic_linkage.attack import ProbabilisticLinkage
from sfumato.data.table import Table
from sfumato.release import Release
from sfumato.rng import Rng

SYLLABLES = [
    "an",
    "ber",
    "car",
    "dan",
    "el",
    "fri",
    "ga",
    "hen",
    "is",
    "jo",
    "ka",
    "lo",
    "mar",
    "ni",
    "ol",
    "pe",
    "ra",
    "so",
    "ti",
    "ul",
    "vi",
    "wen",
]
NUMBERS = ["a", "b", "c", "d"]


def numbers(rows: int, blocks: int, draw: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    original = pl.DataFrame({name: draw.normal(size=rows) for name in NUMBERS}).with_columns(
        pl.Series("area", draw.integers(blocks, size=rows)), pl.Series("kind", draw.choice(list("uvwxyz"), rows))
    )
    return original, original.with_columns(pl.col(name) + 0.1 * draw.normal(size=rows) for name in NUMBERS)


def names(rows: int, blocks: int, draw: np.random.Generator) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every second name has a letter too few, two letters exchanged, or first and last name the other way round."""

    def word(parts: int) -> str:
        return "".join(draw.choice(SYLLABLES, parts)).title()

    def misspelt(name: str) -> str:
        place = int(draw.integers(1, len(name) - 2))
        match int(draw.integers(6)):
            case 0:
                return name[:place] + name[place + 1 :]
            case 1:
                return name[:place] + name[place + 1] + name[place] + name[place + 2 :]
            case 2:
                return ", ".join(reversed(name.split(" ")))
        return name

    given = [f"{word(2)} {word(3)}" for _ in range(rows)]
    year = draw.integers(1930, 2010, size=rows)
    original = pl.DataFrame({"area": draw.integers(blocks, size=rows), "name": given, "year": year})
    return original, original.with_columns(
        pl.Series("name", [misspelt(name) for name in given]), pl.col("year") + draw.integers(-1, 2, size=rows)
    )


def measure(original: pl.DataFrame, released: pl.DataFrame) -> tuple[float, float]:
    """CPU seconds, and the share of people linked correctly."""
    attack = ProbabilisticLinkage(block=("area",))
    knows = tuple(original.columns)
    for size in (500, original.height):  # the first time for compilation and imports
        order = np.random.default_rng(2).permutation(size)
        release = Release(table=Table(frame=released.head(size)[order]), manifest={})
        view = View(release=release, targets=original.head(size), knows=knows)
        used = time.process_time()
        found = attack.guess(view, Rng(1))
        cpu = time.process_time() - used
    assert found.row is not None
    return cpu, float(np.mean((found.row >= 0) & (order[found.row] == np.arange(size))))


def main(rows: int = 100_000, blocks: int = 400) -> None:
    forms = {"data": "", "cpu": ".2f", "linked": ".1%"}
    figures = Figures("probabilistic", "engines" if rows == 100_000 else f"engines_{rows}", forms, {"cpu": "CPU s"})
    print(f"{rows:,} x {rows:,}, {rows * rows / blocks / 1e6:.0f} million blocked pairs")
    titled = {"four numbers with noise, one category": numbers, "a name misspelt every second time, a year ± 1": names}
    for title, make in titled.items():
        cpu, linked = measure(*make(rows, blocks, np.random.default_rng(1)))
        figures.add(data=title, cpu=cpu, linked=linked)


if __name__ == "__main__":
    main(*(int(value) for value in sys.argv[1:] if value.isdigit()))
