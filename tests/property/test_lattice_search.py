"""The pruned search finds what trying every combination of levels finds, for every metric and kind of model."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lattices import combinations, plain_judgement, random_dataset

from sfumato.masking.equivalence_classes import compress
from sfumato.masking.model import Monotonicity
from sfumato.masking.search.lattice import heuristic
from sfumato.masking.search.lattice.bound import lower_bound
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.minimal import minimal_nodes
from sfumato.masking.search.lattice.optimal import search
from sfumato.masking.search.lattice.space import LatticeSpace
from sfumato.registry import registry
from sfumato.rng import Rng

METRICS: dict[str, Any] = dict.fromkeys(registry("metric").names()) | {"classification": {"column": "s"}}
MODELS: list[dict[str, Any]] = [
    {"k-anonymity": 3},
    {"k-anonymity": 2, "l-diversity": {"l": 2}},
    {"t-closeness": {"t": 0.25}},
    {"t-closeness": {"t": 0.2, "distance": "hierarchical"}, "k-anonymity": 2},
    {"l-diversity": {"l": 1.8, "kind": "entropy"}},
    {"l-diversity": {"l": 2, "kind": "recursive", "c": 2}},
    {"l-diversity": {"l": 2, "healthy": ["a"]}},
    {"beta-likeness": {"beta": 1.2}},
    {"delta-disclosure": {"delta": 2}},
    {"alpha-k": {"alpha": 0.7, "k": 2}},
    {"p-sensitive": {"p": 2, "k": 3}},
    {"maximum-risk": 0.3},
]


def space_of(
    seed: int, models: dict[str, Any], metric: str, share: float, *, columns: int = 3, rows: int = 60
) -> LatticeSpace:
    table = compress(random_dataset(seed, rows=rows, columns=columns))
    rules = tuple(registry("model").get(name).build(value).bind(table) for name, value in models.items())
    part = registry("metric").get(metric).build(METRICS[metric])
    return LatticeSpace(table, rules, part, limit=int(share * table.rows), weights={"q0": 2.0, "q1": 0.5})  # type: ignore


def whole(space: LatticeSpace) -> LevelRange:
    return LevelRange(low=(0,) * len(space.heights), high=space.table.heights)


@pytest.mark.parametrize("metric", METRICS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), models=st.sampled_from(MODELS), share=st.sampled_from([0.0, 0.1, 0.3, 1.0]))
def test_the_search_is_exact(metric: str, seed: int, models: dict[str, Any], share: float) -> None:
    space = space_of(seed, models, metric, share)
    found = search(space, whole(space))
    tried = [
        (score, levels)
        for levels in combinations(space.table)
        for meets, score, *_ in [plain_judgement(space, levels)]
        if meets
    ]
    assert found.optimal
    if not tried:
        assert found.best is None
        return
    assert found.best is not None
    assert found.best.score == pytest.approx(min(tried)[0], rel=1e-9, abs=1e-12)
    meets, score, shape, _ = plain_judgement(space, found.best.levels)
    assert meets
    assert score == pytest.approx(found.best.score, rel=1e-9, abs=1e-12)
    assert shape.suppressed == found.best.shape.suppressed


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), models=st.sampled_from(MODELS), share=st.sampled_from([0.0, 0.2]))
def test_every_combination_is_judged_as_the_plain_way_does(seed: int, models: dict[str, Any], share: float) -> None:
    space = space_of(seed, models, "kl", share)
    order = combinations(space.table)
    np.random.default_rng(seed).shuffle(order)
    for levels in order:
        node = space.evaluate(levels)
        meets, _, shape, groups = plain_judgement(space, levels)
        assert node.meets is meets
        if meets:
            assert (node.shape.suppressed, node.shape.classes) == (shape.suppressed, shape.classes)
        of, kept = space.assign(levels)
        sizes = np.bincount(of, weights=space.table.sizes, minlength=len(kept))
        assert sorted(sizes.tolist()) == sorted(groups.sizes.tolist())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), models=st.sampled_from(MODELS), share=st.sampled_from([0.0, 0.2]))
def test_what_a_node_says_of_finer_and_coarser_ones_is_true(seed: int, models: dict[str, Any], share: float) -> None:
    space = space_of(seed, models, "loss", share)
    nodes = {levels: space.evaluate(levels) for levels in combinations(space.table)}
    for (a, one), (b, other) in product(nodes.items(), repeat=2):
        if all(x <= y for x, y in zip(a, b, strict=True)):
            if other.hopeless:
                assert not one.meets
            if one.settled:
                assert other.meets
                assert other.shape.suppressed == 0
            if space.monotonicity is Monotonicity.ANY and one.meets:
                assert other.shape.suppressed <= one.shape.suppressed


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), models=st.sampled_from(MODELS), share=st.sampled_from([0.0, 0.2]))
def test_minimal_combinations(seed: int, models: dict[str, Any], share: float) -> None:
    space = space_of(seed, models, "height", share)
    good = {levels for levels in combinations(space.table) if plain_judgement(space, levels)[0]}

    def below(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
        return a != b and all(x <= y for x, y in zip(a, b, strict=True))

    minimal = {b for b in good if not any(below(a, b) for a in good)}
    assert set(minimal_nodes(space, whole(space))) == minimal


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    metric=st.sampled_from(["loss", "ncp", "entropy", "discernibility", "aecs", "height"]),
    share=st.sampled_from([0.0, 0.2]),
)
def test_the_heuristic_stays_between_bound_and_truth(seed: int, metric: str, share: float) -> None:
    space = space_of(seed, {"k-anonymity": 3}, metric, share, columns=4)
    exact = search(space, whole(space))
    assert exact.best is not None
    bound = lower_bound(space, whole(space), space.evaluate(whole(space).low), seconds=0.05, rng=Rng(seed))
    assert bound <= exact.best.score * (1 + 1e-9) + 1e-12
    small = heuristic._SMALL
    heuristic._SMALL = 0
    try:
        found = heuristic.search(space, whole(space), seconds=0.1, rng=Rng(seed))
    finally:
        heuristic._SMALL = small
    assert found.best is not None
    assert found.bound <= exact.best.score * (1 + 1e-9) + 1e-12
    assert found.best.score >= exact.best.score * (1 - 1e-9)
    assert found.optimal is False or found.best.score == pytest.approx(exact.best.score)


def test_the_heuristic_ends_by_itself_when_nothing_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    space = space_of(3, {"k-anonymity": 3}, "loss", 0.2, columns=4)
    exact = search(space, whole(space)).best
    monkeypatch.setattr(heuristic, "_SMALL", 0)
    found = heuristic.search(space, whole(space), seconds=1e6, rng=Rng(3)).best
    assert exact is not None
    assert found is not None
    assert found.score == pytest.approx(exact.score)
