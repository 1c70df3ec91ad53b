"""Attack: plant accounts before the release and find them afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.arrays import Ints
from sfumato.attacks.graph._base import NodeMatches, Planting
from sfumato.deadline import check_deadline
from sfumato.graphs.graph import Graph
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

_VARIANTS = 5
"""Continuations of a partial pattern that the search follows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Memory:
    inside: npt.NDArray[np.bool_]
    """Which planted nodes are linked to each other."""
    degrees: Ints
    """The degrees of the planted nodes."""
    codes: npt.NDArray[np.bool_]
    """One row per target: the planted nodes that it is linked to."""


class PlantedNodes(Planting):
    """An attacker opens ``nodes`` accounts before the release and befriends every target from a different set of them.

    The accounts form a chain with random further links, a pattern that occurs nowhere else. After the release the
    attacker searches for the pattern, tolerating changed edges, and reads off which nodes their accounts befriended.
    """

    main = "nodes"
    examples = ({"nodes": 12},)
    reference = "Backstrom, Dwork, Kleinberg (2007), Wherefore art thou R3579X?, doi:10.1145/1242572.1242598"

    nodes: Annotated[int, Field(ge=6, le=60)] = 12
    """Number of planted accounts."""
    beam: Annotated[int, Field(ge=1)] = 300
    """Number of partial patterns that the search keeps."""

    def plant(self, graph: Graph, targets: Ints, rng: Rng) -> tuple[Graph, _Memory]:
        random, count = rng.generator, self.nodes
        inside = np.triu(random.random((count, count)) < 0.5, 1)
        inside[np.arange(count - 1), np.arange(1, count)] = True
        every = list(combinations(range(count), 3))
        codes = np.zeros((min(len(targets), len(every)), count), dtype=bool)
        for row, chosen in zip(codes, random.permutation(np.array(every))[: len(codes)], strict=True):
            row[chosen] = True
        ends = np.argwhere(inside) + graph.size
        who, account = np.nonzero(codes)
        links = np.column_stack([targets[who], account + graph.size])
        both = inside | inside.T
        planted = Graph.of(np.concatenate([graph.edges(), ends, links]), size=graph.size + count)
        return planted, _Memory(inside=both, degrees=planted.degrees[graph.size :], codes=codes)

    def find(self, release: Graph, memory: Any, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        places = self._search(release, memory, progress)
        if places is None:
            nobody = np.full(len(memory.codes), -1, dtype=np.int64)
            return NodeMatches.of_nodes(nobody, release.size, found=False)
        linked = np.zeros((release.size, self.nodes), dtype=np.float32)
        for account, place in enumerate(places):
            linked[release.neighbours(place), account] = 1
        linked[places] = 0
        # Links in common, less links that should not be there.
        score = memory.codes.astype(np.float32) @ linked.T - 0.5 * (~memory.codes).astype(np.float32) @ linked.T
        best = score.argmax(axis=1)
        nodes = np.where(score.max(axis=1) > 0, best, -1).astype(np.int64)
        return NodeMatches.of_nodes(nodes, release.size, found=True)

    def _search(self, release: Graph, memory: _Memory, progress: Progress) -> list[int] | None:
        """The nodes that fit the pattern best: a beam search along the chain, cheapest partial patterns first."""
        unlike = np.abs(release.degrees - memory.degrees[0]) / max(int(memory.degrees[0]), 1)
        paths = np.argsort(unlike, kind="stable")[: self.beam * 4].reshape(-1, 1)
        costs = unlike[paths[:, 0]]
        for account in range(1, self.nodes):
            check_deadline(progress)
            row, nodes = self._continuations(release, paths, np.flatnonzero(memory.inside[account, :account]))
            degree = int(memory.degrees[account])
            more = costs[row] + np.abs(release.degrees[nodes] - degree) / degree
            for old in range(account):
                more += release.has_edges(paths[row, old], nodes) != memory.inside[account, old]
                more[paths[row, old] == nodes] = np.inf
            # The best few of each path: otherwise the variants of one wrong path crowd out the others.
            order = np.lexsort((more, row))
            begin = np.searchsorted(row[order], row[order])
            few = order[np.arange(len(order)) - begin < _VARIANTS]
            best = few[np.argsort(more[few], kind="stable")][: self.beam]
            best = best[np.isfinite(more[best])]
            if not len(best):
                return None
            paths, costs = np.column_stack([paths[row[best]], nodes[best]]), more[best]
        return [int(node) for node in paths[0]]

    @staticmethod
    def _continuations(release: Graph, paths: Ints, friends: Ints) -> tuple[Ints, Ints]:
        """Neighbours of the found accounts that the next one is linked to: any of these links may have been deleted."""
        ends = paths[:, friends].ravel()
        counts = release.degrees[ends]
        row = np.repeat(np.repeat(np.arange(len(paths)), len(friends)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        nodes = release.indices[np.repeat(release.indptr[ends], counts) + within].astype(np.int64)
        keys = np.unique(row * release.size + nodes)
        return keys // release.size, keys % release.size
