"""Degree-preserving randomization: two edges exchange their ends (compiled).

Edges a-b and c-d become a-d and c-b. All degrees stay; an exchange that would make a self-loop or a duplicate edge is
not made.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from sfumato.arrays import Ints
from sfumato.graphs.graph import Graph
from sfumato.kernels import kernel

_TRIES = 100


def switch_edges(graph: Graph, share: float, random: np.random.Generator) -> Graph:
    """A graph with the same degrees in which about ``share`` of the edges were switched, each at most once.

    With ``share=1`` every edge is switched several times: what remains of the original are its degrees.
    """
    edges = graph.edges()
    random.shuffle(edges)
    flip = random.random(len(edges)) < 0.5
    edges[flip] = edges[flip][:, ::-1]
    bits = 3 + max(4, len(edges).bit_length())
    seed = int(random.integers(1 << 62))
    for _ in range(5 if share >= 1 else 1):
        edges = cast(Ints, _switch(edges, round(min(share, 1) * len(edges)), graph.size, bits, seed))
        seed += 1
    return graph.with_edges(edges)


@kernel()
def _place(table, key, mask):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The place of a key in the hash table, or the first free place for it (as a negative number)."""
    at = ((key * np.int64(-7046029254386353131)) >> np.int64(17)) & mask
    free = np.int64(-1)
    while table[at] != -1:
        if table[at] == key:
            return at
        if table[at] == -2 and free < 0:
            free = at
        at = (at + 1) & mask
    return -2 - (free if free >= 0 else at)


@kernel()
def _switch(edges, count, size, bits, seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    np.random.seed(seed & 0xFFFFFFFF)
    mask = (np.int64(1) << bits) - 1
    table = np.full(mask + 1, -1, dtype=np.int64)
    total = len(edges)
    for row in range(total):
        low, high = min(edges[row, 0], edges[row, 1]), max(edges[row, 0], edges[row, 1])
        table[-2 - _place(table, low * size + high, mask)] = low * size + high
    done = 0
    while done + 1 < count:
        switched = False
        for _ in range(_TRIES):
            other = done + 1 + np.random.randint(total - done - 1)
            a, b, c, d = edges[done, 0], edges[done, 1], edges[other, 0], edges[other, 1]
            if np.random.randint(2):
                c, d = d, c
            if a in (c, d) or b in (c, d):
                continue
            one, two = min(a, d) * size + max(a, d), min(c, b) * size + max(c, b)
            place = _place(table, one, mask)
            if place >= 0 or _place(table, two, mask) >= 0:
                continue
            table[-2 - place] = one
            table[-2 - _place(table, two, mask)] = two
            table[_place(table, min(a, b) * size + max(a, b), mask)] = -2
            table[_place(table, min(c, d) * size + max(c, d), mask)] = -2
            edges[done, 1], edges[other, 0], edges[other, 1] = d, c, b
            # The partner moves next to it, so that it is not switched again.
            for side in range(2):
                edges[done + 1, side], edges[other, side] = edges[other, side], edges[done + 1, side]
            switched = True
            break
        done += 2 if switched else 1
    return edges
