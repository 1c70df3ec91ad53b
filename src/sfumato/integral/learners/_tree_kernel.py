"""Decision trees over cell counts, compiled. Splits are compared exactly, so ties are ties on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.kernels import kernel

LEAF = -1
MAX_RECORDS = 2_000_000
"""Products of three counts must fit in 63 bits."""


@kernel()
def _exceeds(a: int, b: int, c: int, d: int) -> bool:
    """Whether a / b > c / d for positive b and d, by continued fractions: no product that could overflow."""
    while True:
        whole, other = a // b, c // d
        if whole != other:
            return whole > other
        a, c = a - whole * b, c - other * d
        if a == 0:
            return False
        if c == 0:
            return True
        a, b, c, d = d, c, b, a


@kernel()
def fit_trees(
    features: Any, labels: Any, counts: Any, sizes: Any, ordered: Any, n_classes: int, depth: int, min_leaf: int
) -> Any:
    """Trees by greedy Gini splits, one per row of ``counts``: feature, code and class of each node.

    Node i has the children 2i + 1 (codes at most the split, or equal to it for a category) and 2i + 2. A node is split
    at the best split if that strictly lowers the impurity and leaves ``min_leaf`` records on both sides; among equals
    the first feature wins, then the smallest code. A leaf predicts its most frequent class, among equals the first; an
    inner node has no class, as its majority is not published.
    """
    n_cells, n_features = features.shape
    nodes = 2 ** (depth + 1) - 1
    widest = sizes.max() if n_features else 1
    trees = np.full((counts.shape[0], nodes, 3), LEAF, np.int16)
    hist = np.zeros((2**depth, n_features, widest, n_classes), np.int64)
    node_of = np.zeros(n_cells, np.int64)
    left, total = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    for tree in range(counts.shape[0]):
        node_of[:] = 0
        for level in range(depth + 1):
            first, width = 2**level - 1, 2**level
            hist[:width] = 0
            classes = np.zeros((width, n_classes), np.int64)
            for cell in range(n_cells):
                weight, node = counts[tree, cell], node_of[cell]
                if weight > 0 and node >= first:
                    classes[node - first, labels[cell]] += weight
                    if level < depth:
                        for j in range(n_features):
                            hist[node - first, j, features[cell, j], labels[cell]] += weight
            for place in range(width):
                total[:] = classes[place]
                n = total.sum()
                if n == 0:
                    continue
                trees[tree, first + place, 2] = np.argmax(total)
                if level == depth:
                    continue
                best_a, best_b = (total * total).sum(), n
                for j in range(n_features):
                    left[:] = 0
                    for code in range(sizes[j]):
                        if ordered[j]:
                            left += hist[place, j, code]
                        else:
                            left[:] = hist[place, j, code]
                        n_left = left.sum()
                        n_right = n - n_left
                        if n_left < min_leaf or n_right < min_leaf or n_left == 0 or n_right == 0:
                            continue
                        right = total - left
                        a = (left * left).sum() * n_right + (right * right).sum() * n_left
                        if _exceeds(a, n_left * n_right, best_a, best_b):
                            best_a, best_b = a, n_left * n_right
                            trees[tree, first + place, 0] = j
                            trees[tree, first + place, 1] = code
                            trees[tree, first + place, 2] = LEAF
            if level < depth:
                for cell in range(n_cells):
                    node = node_of[cell]
                    if counts[tree, cell] > 0 and node >= first:
                        j = trees[tree, node, 0]
                        if j >= 0:
                            code, split = features[cell, j], trees[tree, node, 1]
                            goes_left = code <= split if ordered[j] else code == split
                            node_of[cell] = 2 * node + (1 if goes_left else 2)
    return trees


@kernel()
def predict_cells(tree: Any, features: Any, ordered: Any) -> object:
    """The class that a tree predicts for each cell."""
    classes = np.zeros(features.shape[0], np.int64)
    for cell in range(features.shape[0]):
        node = 0
        while tree[node, 0] >= 0:
            j = tree[node, 0]
            goes_left = features[cell, j] <= tree[node, 1] if ordered[j] else features[cell, j] == tree[node, 1]
            node = 2 * node + (1 if goes_left else 2)
        classes[cell] = tree[node, 2]
    return classes
