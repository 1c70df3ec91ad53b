"""Contract of an information-loss metric: losses grow with the level, and lower bounds hold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.errors import BadParameter
from sfumato.masking.equivalence_classes import EquivalenceClasses, compress
from sfumato.masking.metric import ClassTotals, LossMetric
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.search.lattice.space import LatticeSpace
from sfumato.testing.parts import expect, run_checks
from sfumato.testing.population import population

_COLUMNS = ("zip", "sex", "income")
_ROWS = 300
_SLACK = 1e-12


def check_metric(metric: LossMetric) -> None:
    """Raise AssertionError unless ``metric`` keeps the contract of a loss metric.

    Losses never fall with the level; without suppression a coarser table never scores lower where the metric says
    ``grows``; :meth:`~LossMetric.above` and :meth:`~LossMetric.below` are lower bounds of every score they speak
    about, so that a search that prunes with them stays exact; bad weights are refused.
    """
    run_checks(metric, METRIC_CHECKS)


def _table(metric: LossMetric) -> EquivalenceClasses:
    return compress(population(_ROWS, sensitive=metric.target or "diagnosis"), columns=_COLUMNS)


def _space(metric: LossMetric, k: int | None = None, limit: int = 0) -> LatticeSpace:
    classes = _table(metric)
    return LatticeSpace(classes, (KAnonymity(k=k).bind(classes),) if k is not None else (), metric, limit=limit)


def _nodes(space: LatticeSpace) -> list[tuple[int, ...]]:
    return [tuple(index) for index in np.ndindex(*(height + 1 for height in space.table.heights))]


def _finer(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return all(x <= y for x, y in zip(one, other, strict=True))


def losses_never_fall_with_the_level(metric: LossMetric) -> None:
    table = _table(metric)
    losses = metric.bind(table)
    for bound, levels, star in zip(table.hierarchies, losses.cells, losses.star, strict=True):
        by_value = [loss[level.codes] for loss, level in zip(levels, bound.levels, strict=True)]
        for finer, coarser in pairwise(by_value):
            assert (coarser >= finer - 1e-15).all(), "the loss of a cell falls with the level"
        assert (by_value[-1] <= star + 1e-15).all(), "a suppressed cell costs less than the top level"


def coarser_tables_never_score_lower_without_suppression(metric: LossMetric) -> None:
    space = _space(metric)
    scores = {levels: space.evaluate(levels).score for levels in _nodes(space)}
    assert scores[(0,) * len(_COLUMNS)] == min(scores.values()), "the original does not have the lowest score"
    if metric.grows:
        for a, one in scores.items():
            for b, other in scores.items():
                assert not _finer(a, b) or one <= other * (1 + _SLACK) + _SLACK, "a coarser table scores lower"


def bounds_hold(metric: LossMetric) -> None:
    """Score of every table against the bounds from every finer and coarser one, with suppression."""
    space = _space(metric, k=3, limit=_ROWS)
    judged = {levels: space.evaluate(levels, explain=True) for levels in _nodes(space)}
    columns = np.arange(len(_COLUMNS))
    for a, one in judged.items():
        for b, other in judged.items():
            if not _finer(a, b):
                continue
            floor = metric.columns(space.base[columns, list(b)], space.losses).sum()
            above = metric.above(np.asarray(floor), space.losses, one.shape, least=3, stay=True)
            assert above <= other.score * (1 + _SLACK) + _SLACK, "`above` exceeds the score of a coarser table"
            extra = other.extra[columns, list(a)] if other.extra is not None else 0.0
            floor = metric.columns(space.base[columns, list(a)] + extra, space.losses).sum()
            below = metric.below(np.asarray(floor), space.losses, other.shape, least=3)
            assert below <= one.score * (1 + _SLACK) + _SLACK, "`below` exceeds the score of a finer table"


def suppressing_everything_has_a_score(metric: LossMetric) -> None:
    losses = metric.bind(_table(metric))
    everything = ClassTotals(rows=_ROWS, suppressed=_ROWS, classes=0, term=0.0)
    assert np.isfinite(metric.score(np.zeros(len(_COLUMNS)), losses, everything)), "suppressing all rows has no score"


def bad_weights_are_refused(metric: LossMetric) -> None:
    bad: tuple[dict[str, Any], ...] = ({"zip": -1.0}, {"nobody": 1.0}, dict.fromkeys(_COLUMNS, 0.0))
    for weights in bad:
        with expect(BadParameter, f"weights {weights} are accepted"):
            metric.bind(_table(metric), weights)


METRIC_CHECKS = (
    losses_never_fall_with_the_level,
    coarser_tables_never_score_lower_without_suppression,
    bounds_hold,
    suppressing_everything_has_a_score,
    bad_weights_are_refused,
)
