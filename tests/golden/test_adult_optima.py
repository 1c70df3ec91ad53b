"""The optima that ARX 3.9.2 proves on Adult: levels, suppressed rows, classes, smallest class and score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from adult import COLUMNS, adult, compressed

from sfumato.errors import NotApplicable
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.pipeline import protect
from sfumato.masking.population_uniques import Sizes, pitman, zayatz
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.optimal import search
from sfumato.masking.search.lattice.space import LatticeSpace, Node
from sfumato.rationals import floor_share
from sfumato.registry import registry
from sfumato.rng import Rng

K5 = {"k-anonymity": 5}
DIVERSE = {"k-anonymity": 5, "l-diversity": {"l": 2}}
CLOSE = {"k-anonymity": 5, "t-closeness": {"t": 0.2, "distance": "hierarchical"}}
RECURSIVE = {"k-anonymity": 5, "l-diversity": {"l": 3, "c": 4, "kind": "recursive"}}
EQUAL = {"k-anonymity": 5, "t-closeness": {"t": 0.2, "distance": "equal"}}
WITHOUT = "discernibility-without-suppression"

OPTIMA = [
    (K5, "loss", 0, (0, 4, 1, 1, 3, 2, 2, 1, 0), 0, 24, 69, 0.573150966),
    (K5, "loss", 0.05, (0, 3, 0, 0, 2, 1, 1, 2, 0), 1346, 397, 5, 0.241932365),
    (K5, "loss", 1, (0, 3, 0, 0, 2, 1, 1, 1, 0), 2553, 602, 5, 0.220411928),
    (K5, "aecs", 0.05, (1, 0, 1, 1, 3, 2, 2, 0, 1), 906, 1046, 5, 28.808023),
    (K5, "discernibility", 0.05, (0, 0, 1, 2, 3, 2, 2, 1, 1), 105, 356, 5, 7220555),
    (K5, "entropy", 0, (1, 2, 1, 1, 3, 2, 2, 1, 1), 0, 48, 5, 407289.53889),
    (K5, "precision", 0.05, (0, 4, 0, 0, 3, 1, 0, 1, 0), 1461, 391, 5, 0.365625622),
    (DIVERSE, "loss", 0.05, (0, 3, 0, 0, 2, 1, 1, 0), 1346, 397, 5, 0.170122792),
    (CLOSE, "loss", 0.05, (1, 4, 0, 0, 3, 1, 2, 1), 1384, 24, 7, 0.612806496),
    (RECURSIVE, "loss", 0.05, (0, 2, 0, 1, 2, 1, 1, 0), 1408, 378, 5, 0.209361451),
    # published optima for equal-distance closeness
    (EQUAL, "discernibility", 0, (1, 4, 1, 1, 3, 2, 2, 1), 0, 2, 14086, 456_853_172),
    (EQUAL, WITHOUT, 0.04, (1, 4, 1, 0, 3, 2, 2, 1), 848, 5, 370, 311_880_088),
]


@pytest.mark.parametrize(
    ("models", "metric", "share", "levels", "suppressed", "classes", "smallest", "score"),
    OPTIMA,
    ids=[f"{'+'.join(row[0])}-{row[1]}-{row[2]}" for row in OPTIMA],
)
def test_the_same_optimum(
    models: dict[str, Any],
    metric: str,
    share: float,
    levels: tuple[int, ...],
    suppressed: int,
    classes: int,
    smallest: int,
    score: float,
) -> None:
    table = compressed() if models is K5 else compressed("occupation")
    rules = tuple(registry("model").get(name).build(value).bind(table) for name, value in models.items())
    space = LatticeSpace(table, rules, registry("metric").get(metric).build(), limit=floor_share(share, table.rows))
    found = search(space, LevelRange(low=(0,) * len(levels), high=table.heights))
    assert found.optimal
    assert found.best is not None
    best = found.best
    assert best.levels == levels
    assert (best.shape.suppressed, best.shape.classes, best.smallest) == (suppressed, classes, smallest)
    assert best.score == pytest.approx(score, rel=5e-9)


def _best(metric: str, share: float) -> tuple[LatticeSpace, Node]:
    table = compressed()
    rules = (registry("model").get("k-anonymity").build(5).bind(table),)
    space = LatticeSpace(table, rules, registry("metric").get(metric).build(), limit=floor_share(share, table.rows))
    found = search(space, LevelRange(low=(0,) * len(table.heights), high=table.heights))
    assert found.optimal
    assert found.best is not None
    return space, found.best


def test_height_is_the_sum_of_levels_whatever_is_suppressed() -> None:
    _, best = _best("height", 0.05)
    assert best.shape.suppressed > 0
    assert best.score == sum(best.levels) == 8


def test_entropy_and_its_score_in_arx() -> None:
    """ARX takes the values of the suppressed rows as known; at the same node its score is 264,342."""
    space, best = _best("entropy", 0.05)
    assert (best.levels, best.shape.suppressed) == ((0, 0, 1, 1, 2, 2, 2, 1, 1), 1285)
    assert best.score == pytest.approx(267_401.10, abs=0.01)
    of, kept = space.assign(best.levels)
    table, lost = space.table, ~kept[of]
    bits = 0.0
    for column, (hierarchy, level) in enumerate(zip(table.hierarchies, best.levels, strict=True)):
        leaf = table.codes[:, column]
        code = hierarchy.levels[level].codes[leaf]
        group, own = np.bincount(code, weights=table.sizes)[code], np.bincount(leaf, weights=table.sizes)[leaf]
        among = np.bincount(code[lost], weights=table.sizes[lost])
        among = among[among > 0]
        bits += float(table.sizes @ np.log2(group / own) - among @ np.log2(among / among.sum()))
    assert bits == pytest.approx(264_342, abs=0.5)


def test_the_step_gives_the_same_table() -> None:
    done = protect(adult(), steps=[Generalize(suppression=0.05)], models=[KAnonymity(k=5)], rng=Rng(1), order="kept")
    change = done.steps[0].change
    assert change.public["levels"] == dict(zip(COLUMNS, (0, 3, 0, 0, 2, 1, 1, 2, 0), strict=True))
    assert change.public["optimal"] is True
    assert change.private["suppressed"] == 1346
    assert done.data.rows == 30162 - 1346
    assert done.verdicts[0].holds
    assert done.verdicts[0].worst == 5


def test_adult_has_the_known_risks() -> None:
    sizes = compressed().sizes
    assert len(sizes) == 19_502
    assert int((sizes == 1).sum()) == 15_512
    assert len(sizes) / sizes.sum() == pytest.approx(0.646575, abs=1e-6)
    assert zayatz(Sizes.of(sizes, 0.1)) == pytest.approx(0.320740, abs=1e-6)
    assert pitman(Sizes.of(sizes, 0.1)) == pytest.approx(0.276850, abs=1e-6)


def test_uniqueness_has_its_edges() -> None:
    assert zayatz(Sizes.of(np.array([2, 3]), 0.1)) == 0.0
    assert pitman(Sizes.of(np.array([2, 3]), 0.1)) == 0.0
    assert zayatz(Sizes.of(np.ones(10, dtype=np.int64), 1.0)) == pytest.approx(1.0)
    with pytest.raises(NotApplicable):
        pitman(Sizes.of(np.ones(10, dtype=np.int64), 0.5))
