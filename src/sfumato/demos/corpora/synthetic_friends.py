"""Synthetic social graphs with communities, well-connected people, triangles, and attributes that friends share."""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.errors import BadParameter
from sfumato.graphs.graph import Graph, edge_keys
from sfumato.rng import Rng

_VIEWS = ("green", "left", "right")


def synthetic_friends(size: int, rng: Rng, *, degree: float = 12.0, community: int = 60) -> Graph:
    """A graph of ``size`` people with about ``degree`` friends each, in communities of about ``community``.

    Numbers of friends are long-tailed. Four of five friendships lie within a community, and a third are made with a
    friend of a friend. The node table has the columns ``node``, ``town`` (the community), ``age`` and ``vote``, which
    most people of a community share.

    >>> synthetic_friends(500, Rng(1))
    <Graph: 500 nodes, 3,000 edges>
    """
    if size < 10 or degree >= size / 4:
        raise BadParameter("A synthetic graph has at least 10 people, whose mean degree is below a quarter of them.")
    random = rng.generator
    towns = max(1, round(size / community))
    town = np.sort(random.integers(towns, size=size))
    weight = np.minimum(1 + random.pareto(2.2, size), size**0.5)
    wanted = round(size * degree / 2)
    keys = _grow(np.empty(0, dtype=np.int64), round(wanted * 2 / 3), size, lambda n: _meet(n, town, weight, random))
    keys = _grow(keys, wanted, size, lambda n: _introduce(n, keys, size, random))
    vote = np.where(random.random(size) < 0.7, random.permutation(np.arange(towns) % len(_VIEWS))[town], -1)
    vote = np.where(vote < 0, random.integers(len(_VIEWS), size=size), vote)
    nodes = pl.DataFrame(
        {
            "node": [f"person-{number}" for number in random.permutation(size)],
            "town": [f"town-{number + 1}" for number in town],
            "age": random.integers(18, 80, size),
            "vote": pl.Series([_VIEWS[number] for number in vote]),
        }
    )
    return Graph.of(np.column_stack([keys // size, keys % size]), size=size, nodes=nodes)


def _grow(keys: Ints, wanted: int, size: int, propose: object) -> Ints:
    """Add different proposed edges until there are ``wanted``."""
    assert callable(propose)
    for _ in range(200):
        if len(keys) >= wanted:
            break
        first, second = propose(2 * (wanted - len(keys)) + 16)
        apart = first != second
        both = np.concatenate([keys, edge_keys(first[apart], second[apart], size)])
        keys = both[np.sort(np.unique(both, return_index=True)[1])][:wanted]
    return keys


def _meet(count: int, town: Ints, weight: np.ndarray, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Well-connected people meet more often; four of five meetings are within a town."""
    total = np.concatenate([[0.0], np.cumsum(weight)])
    first = np.searchsorted(total, random.random(count) * total[-1], side="right") - 1
    begin = np.searchsorted(town, town[first], side="left")
    end = np.searchsorted(town, town[first], side="right")
    near = random.random(count) < 0.8
    low, high = np.where(near, total[begin], 0.0), np.where(near, total[end], total[-1])
    second = np.searchsorted(total, low + random.random(count) * (high - low), side="right") - 1
    last = len(town) - 1
    return np.minimum(first, last), np.minimum(second, last)


def _introduce(count: int, keys: Ints, size: int, random: np.random.Generator) -> tuple[Ints, Ints]:
    """Two friends of one person become friends."""
    graph = Graph.of(np.column_stack([keys // size, keys % size]), size=size)
    middle = graph.indices[random.integers(len(graph.indices), size=count)].astype(np.int64)
    ends = [
        graph.indices[graph.indptr[middle] + (random.random(count) * graph.degrees[middle]).astype(np.int64)]
        for _ in range(2)
    ]
    return ends[0].astype(np.int64), ends[1].astype(np.int64)
