"""Reconstruction of the people of areas from published counts."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.errors import BadParameter

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
try:
    from area_reconstruction import PublishedCounts, reconstruct_areas
finally:
    sys.path.pop(0)

SEX, AGE, RACE = np.indices((2, 6, 3)).reshape(3, -1)
BLOCKS, TRACTS = np.arange(8), np.arange(8) // 4


def town(seed: int) -> npt.NDArray[np.int64]:
    """Eight blocks of about nine people; each block has few races."""
    random = np.random.default_rng(seed)
    counts = np.zeros((8, 36), dtype=np.int64)
    for block in range(8):
        race = random.choice(3, p=[0.8, 0.1, 0.1], size=9)
        cell = np.ravel_multi_index((random.integers(0, 2, 9), random.integers(0, 6, 9), race), (2, 6, 3))
        np.add.at(counts[block], cell, 1)
    return counts


def tables(counts: npt.NDArray[np.int64]) -> list[PublishedCounts]:
    cells = [(BLOCKS, SEX * 3 + RACE), (BLOCKS, (SEX * 6 + AGE)), (TRACTS, AGE * 3 + RACE)]
    return [PublishedCounts.tabulate(counts, area=area, cell=cell) for area, cell in cells]


def test_the_people_found_agree_with_all_tables_and_many_are_the_true_ones() -> None:
    true = town(1)
    found = reconstruct_areas(tables(true))
    assert found.solved.all()
    for wanted, got in zip(tables(true), tables(found.counts), strict=True):
        assert (wanted.counts == got.counts).all()
    right = np.minimum(found.counts, true).sum() / true.sum()
    # Without the tables: people of another town that was drawn in the same way.
    guess = np.minimum(town(2), true).sum() / true.sum()
    assert right > 0.7 > 0.4 > guess


def test_tables_that_show_every_cell_give_everybody_back() -> None:
    true = town(3)
    found = reconstruct_areas([PublishedCounts.tabulate(true, area=BLOCKS, cell=np.arange(36))])
    assert (found.counts == true).all()


def test_contradicting_tables_leave_their_region_alone_unsolved() -> None:
    true = town(4)
    shown = tables(true)
    shown[1].counts[7, 0] += 1
    found = reconstruct_areas(shown)
    assert found.solved.tolist() == [True] * 4 + [False] * 4
    assert found.counts[4:].sum() == 0


def test_tables_that_leave_people_out_or_do_not_fit_are_refused() -> None:
    true = town(5)
    with pytest.raises(BadParameter, match="in no table"):
        reconstruct_areas([PublishedCounts.tabulate(true, area=BLOCKS, cell=np.where(AGE < 3, AGE, -1))])
    with pytest.raises(BadParameter, match="same smallest areas"):
        reconstruct_areas([tables(true)[0], PublishedCounts.tabulate(true[:4], area=BLOCKS[:4], cell=SEX)])
