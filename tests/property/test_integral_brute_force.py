"""Integral privacy against brute force: every set of people, every subset of the data, exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.integral import ChangeKind, Encoding, Records, all_generators, explain
from sfumato.integral.learners.decision_tree import DecisionTreeLearner

Row = tuple[int, ...]


def plain_tree(rows: list[Row], sizes: list[int], ordered: list[bool], depth: int, min_leaf: int) -> Any:
    """The tree of the definition, in fractions: nested (feature, code, left, right) or a class."""
    classes = [row[-1] for row in rows]
    most = min(sorted(set(classes)), key=lambda label: -classes.count(label))

    def purity(part: list[Row]) -> Fraction:
        labels = [row[-1] for row in part]
        return Fraction(sum(labels.count(label) ** 2 for label in set(labels)), len(labels))

    best, split = purity(rows), None
    for feature in range(len(sizes) if depth else 0):
        for code in range(sizes[feature]):
            left = [r for r in rows if (r[feature] <= code if ordered[feature] else r[feature] == code)]
            right = [r for r in rows if r not in left]
            if min(len(left), len(right)) < max(1, min_leaf):
                continue
            if purity(left) + purity(right) > best:
                best, split = purity(left) + purity(right), (feature, code, left, right)
    if split is None:
        return most
    return (*split[:2], *(plain_tree(part, sizes, ordered, depth - 1, min_leaf) for part in split[2:]))


def nested(model: bytes, node: int = 0) -> Any:
    nodes = np.frombuffer(model, dtype=np.int16).reshape(-1, 3)
    feature, code, label = (int(part) for part in nodes[node])
    return label if feature < 0 else (feature, code, nested(model, 2 * node + 1), nested(model, 2 * node + 2))


def sample(seed: int, people: int, *, labels: int = 2) -> Records:
    draw = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "a": draw.integers(0, 3, people),
            "b": draw.choice(["x", "y", "z"], people),
            "t": draw.integers(0, labels, people).astype(str),
        }
    )
    return Records.of(frame, Encoding.from_table(frame, features=["a", "b"], label="t", edges={"a": [0, 1]}))


@pytest.mark.parametrize("seed", range(30))
def test_trees_are_those_of_the_definition(seed: int) -> None:
    records = sample(seed, 25, labels=2 + seed % 2)
    tree = DecisionTreeLearner(depth=1 + seed % 3, min_leaf=1 + seed % 4)
    rows = [tuple(map(int, records.cells[cell])) for cell in records.cell_of_row]
    sizes, ordered = [3, records.encoding.features[1].size], [True, False]
    assert nested(tree.fit(records, records.counts)) == plain_tree(rows, sizes, ordered, tree.depth, tree.min_leaf)


def brute_force(records: Records, tree: DecisionTreeLearner, new: bytes, kinds: set[str], size: int, known: set[int]):
    """All minimal modifications, person by person: sets of (person or None, new cell or None)."""
    cells = [int(cell) for cell in records.cell_of_row]
    free = [person for person in range(len(cells)) if person not in known]
    atoms: list[tuple[Any, Any, int]] = []
    if "deletion" in kinds:
        atoms += [(person, None, 0) for person in free]
    if "insertion" in kinds:
        atoms += [(None, cell, copy) for cell in range(len(records.cells)) for copy in range(size)]
    if "amendment" in kinds:
        atoms += [(p, cell, 0) for p in free for cell in range(len(records.cells)) if cell != cells[p]]
    explaining = set()
    for chosen in chain.from_iterable(combinations(atoms, length) for length in range(1, size + 1)):
        people = [person for person, _, _ in chosen if person is not None]
        lost, gained = {cells[p] for p in people}, {cell for _, cell, _ in chosen if cell is not None}
        copies = {(cell, copy) for person, cell, copy in chosen if person is None}
        in_order = all(copy == 0 or (cell, copy - 1) in copies for cell, copy in copies)
        if len(set(people)) < len(people) or lost & gained or not in_order:
            continue
        counts = records.counts.copy()
        for person, cell, _ in chosen:
            if person is not None:
                counts[cells[person]] -= 1
            if cell is not None:
                counts[cell] += 1
        if counts.any() and tree.fit(records, counts) == new:
            # Copies of an inserted record are alike: a multiset, written with its multiplicities.
            plain = [(p, c) for p, c, _ in chosen]
            explaining.add(frozenset((one, number) for one in plain for number in range(plain.count(one))))
    return {one for one in explaining if not any(other < one for other in explaining)}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "kinds", [("deletion",), ("insertion",), ("amendment",), ("deletion", "insertion")], ids="+".join
)
def test_minimal_modifications_are_those_of_brute_force(seed: int, kinds: tuple[str, ...]) -> None:
    records, tree = sample(seed, 9), DecisionTreeLearner(depth=2, min_leaf=1)
    known = [0, 4] if seed % 2 else []
    models = {tree.fit(records, records.without([row])) for row in range(4)} | {tree.fit(records, records.counts)}
    for new in sorted(models):
        truth = brute_force(records, tree, new, set(kinds), 2, set(known))
        found = explain(tree, records, new, size=2, kinds=[ChangeKind(kind) for kind in kinds], known=known)
        people = {person for one in truth for (person, _), _ in one if person is not None}
        everywhere = set.intersection(*({p for (p, _), _ in one if p is not None} for one in truth)) if truth else set()
        assert found.complete
        assert (found.ways, found.people, found.people_in_all) == (len(truth), len(people), len(everywhere))
        assert set(found.in_all()) == {int(records.cell_of_row[person]) for person in everywhere}


@pytest.mark.parametrize("seed", range(4))
def test_generators_are_all_subsets(seed: int) -> None:
    records, tree = sample(seed, 8), DecisionTreeLearner(depth=1, min_leaf=1)
    cells = [int(cell) for cell in records.cell_of_row]
    known = {1, 2} if seed % 2 else set()
    sets: dict[bytes, list[frozenset[int]]] = {}
    for inside in product([False, True], repeat=8):
        rows = frozenset(row for row in range(8) if inside[row])
        if rows and rows >= known:
            counts = np.bincount([cells[row] for row in rows], minlength=len(records.cells))
            sets.setdefault(tree.fit(records, counts), []).append(rows)
    found = all_generators(tree, records, k=3, known=sorted(known))
    assert {one.model for one in found.models} == set(sets)
    for one in found.models:
        common = frozenset.intersection(*sets[one.model]) - known
        assert one.people_in_all == len(common)
        different = {tuple(sorted(cells[row] for row in rows)) for rows in sets[one.model]}
        assert one.generators == len(different)
        holds = len(different) >= 3 and not common
        assert found.verdict(one.model).state == ("holds" if holds else "fails")
