"""Random small tables with random hierarchies, and the plainest possible search over them."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.equivalence_classes import ClassGroups, EquivalenceClasses
from sfumato.masking.metric import ClassTerm, ClassTotals
from sfumato.masking.search.lattice.space import LatticeSpace


def random_dataset(seed: int, *, rows: int, columns: int, population: bool = False) -> Data:
    """Quasi-identifiers with one to three random levels above the value, and two sensitive columns."""
    draw = np.random.default_rng(seed)
    frame: dict[str, list[str]] = {}
    schema: dict[str, Column] = {}
    for number in range(columns):
        leaves = int(draw.integers(2, 7))
        labels = [[f"v{leaf}"] for leaf in range(leaves)]
        group = np.arange(leaves)
        for level in range(int(draw.integers(0, 3))):
            group = np.unique(draw.integers(0, max(2, leaves - level), group.max() + 1), return_inverse=True)[1][group]
            for leaf in range(leaves):
                labels[leaf].append(f"g{level}.{group[leaf]}")
        rule = {"table": {"rows": [[*line, "*"] for line in labels]}}
        schema[f"q{number}"] = Column(role=Role.QUASI, hierarchy=rule)  # type: ignore[arg-type]
        frame[f"q{number}"] = [f"v{leaf}" for leaf in np.minimum(draw.geometric(0.4, rows) - 1, leaves - 1)]
    taxonomy = {"table": {"rows": [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"]]}}
    schema["s"] = Column(role=Role.SENSITIVE, hierarchy=taxonomy)  # type: ignore[arg-type]
    frame["s"] = draw.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]).tolist()
    return Data.of(Table(frame=pl.DataFrame(frame)), Schema(columns=schema))


def combinations(table: EquivalenceClasses) -> list[tuple[int, ...]]:
    return list(product(*(range(height + 1) for height in table.heights)))


def plain_judgement(space: LatticeSpace, levels: tuple[int, ...]) -> tuple[bool, float, ClassTotals, ClassGroups]:
    """Group, test and score by the table's own roll-up: no packed keys, no stored tables, no bounds."""
    rolled = space.table.roll_up(levels)
    groups = rolled.groups()
    kept = groups.sizes >= max(space.least, 1)
    for rule in space.rules:
        kept &= rule.passes(groups)
    sizes = groups.sizes[kept]
    suppressed = int(groups.sizes.sum() - sizes.sum())
    term = 0.0
    match space.metric.class_term:
        case ClassTerm.SQUARES:
            term = float((sizes**2).sum())
        case ClassTerm.ALL_SQUARES:
            term = float((groups.sizes**2).sum())
        case ClassTerm.XLOGX:
            term = float((sizes * np.log2(sizes)).sum())
        case ClassTerm.MINORITY:
            matrix = groups.histograms[space.metric.target or ""][kept]
            term = float(matrix.sum() - matrix.max(axis=1, initial=0).sum())
        case ClassTerm.NONE:
            pass
    cells = np.zeros(len(levels))
    for column, level in enumerate(levels):
        loss = space.losses.cells[column][level][rolled.codes[kept, column]]
        cells[column] = loss @ sizes
    shape = ClassTotals(rows=space.rows, suppressed=suppressed, classes=len(sizes), term=term)
    score = space.metric.score(cells, space.losses, shape)
    return suppressed <= space.limit and len(sizes) > 0, score, shape, groups
