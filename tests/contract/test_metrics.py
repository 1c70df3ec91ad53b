"""What every loss metric must do: nothing lost at the bottom, bounds that hold, losses that grow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from people import dataset

from sfumato.errors import BadParameter
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.masking.metric import ClassTotals, LossMetric
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.search.lattice.space import LatticeSpace
from sfumato.registry import registry

METRICS = [pytest.param(kind, id=kind.part_name()) for kind in registry("metric")]
every = pytest.mark.parametrize("kind", METRICS)


def made(kind: type[LossMetric]) -> LossMetric:
    return kind.build({"column": "diagnosis"} if kind.part_name() == "classification" else None)


def table() -> EquivalenceClasses:
    return compress(dataset(300), columns=("zip", "sex", "income"))


def spaces(metric: LossMetric, k: int | None = None, limit: int = 0) -> LatticeSpace:
    classes = table()
    return LatticeSpace(classes, (KAnonymity(k=k).bind(classes),) if k is not None else (), metric, limit=limit)


def nodes(space: LatticeSpace) -> list[tuple[int, ...]]:
    return [tuple(index) for index in np.ndindex(*(height + 1 for height in space.table.heights))]


@every
def test_prices_never_fall_with_the_level(kind: type[LossMetric]) -> None:
    losses = made(kind).bind(table())
    for hierarchy, levels, star in zip(table().hierarchies, losses.cells, losses.star, strict=True):
        by_leaf = [loss[level.codes] for loss, level in zip(levels, hierarchy.levels, strict=True)]
        for finer, coarser in pairwise(by_leaf):
            assert (coarser >= finer - 1e-15).all()
        assert (by_leaf[-1] <= star + 1e-15).all()


@every
def test_coarser_tables_never_score_lower_without_suppression(kind: type[LossMetric]) -> None:
    space = spaces(made(kind))
    scores = {levels: space.judge(levels).score for levels in nodes(space)}
    assert scores[(0, 0, 0)] == min(scores.values())
    if kind.grows:
        for a, one in scores.items():
            for b, other in scores.items():
                if all(x <= y for x, y in zip(a, b, strict=True)):
                    assert one <= other * (1 + 1e-12) + 1e-12


@every
def test_bounds_hold(kind: type[LossMetric]) -> None:
    """Score of every table against the bounds that every finer and coarser one gives for it, with suppression."""
    metric = made(kind)
    space = spaces(metric, k=3, limit=300)
    found = {levels: space.judge(levels, explain=True) for levels in nodes(space)}
    for a, one in found.items():
        for b, other in found.items():
            if not all(x <= y for x, y in zip(a, b, strict=True)):
                continue
            base = space.base[np.arange(3), list(b)]
            floor = metric.columns(base, space.losses).sum()
            above = metric.above(np.asarray(floor), space.losses, one.shape, least=3, stay=True)
            assert above <= other.score * (1 + 1e-12) + 1e-12
            extra = other.extra[np.arange(3), list(a)] if other.extra is not None else 0.0
            floor = metric.columns(space.base[np.arange(3), list(a)] + extra, space.losses).sum()
            below = metric.below(np.asarray(floor), space.losses, other.shape, least=3)
            assert below <= one.score * (1 + 1e-12) + 1e-12


@every
def test_suppressing_everything_is_a_score_too(kind: type[LossMetric]) -> None:
    metric = made(kind)
    losses = metric.bind(table())
    score = metric.score(np.zeros(3), losses, ClassTotals(rows=300, suppressed=300, classes=0, term=0.0))
    assert np.isfinite(score)


@pytest.mark.parametrize("weights", [{"zip": -1.0}, {"nobody": 1.0}, {"zip": 0.0, "sex": 0.0, "income": 0.0}])
@every
def test_bad_weights_are_refused(kind: type[LossMetric], weights: dict[str, Any]) -> None:
    with pytest.raises(BadParameter, match="weights"):
        made(kind).bind(table(), weights)
