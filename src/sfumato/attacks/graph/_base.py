"""Base classes of attacks on released graphs.

An attack is one class in one file of ``attacks/graph``. It receives a :class:`GraphView`, which contains only what the
adversary has: the released graph without names, and what they know about the friendships of people. It never learns
whether a guess was correct: :func:`~sfumato.attacks.graph._evaluate.evaluate_graph_attack` compares the guesses with
the truth and runs the main, baseline and control arms in the same way for every attack.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Array, Ints
from sfumato.attacks.base import Discloses, View
from sfumato.graphs.graph import Graph
from sfumato.params import Part
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphView:
    """What the adversary has."""

    release: Graph
    """The released graph. Its node numbers mean nothing; its node table holds the released attributes."""
    known: Graph
    """What the adversary knows about friendships, over people whom they can name."""
    targets: Ints
    """Nodes of ``known`` that the adversary looks for."""
    protect: Callable[[Graph, Rng], Graph] | None = None
    """The published method (transparency): the adversary can protect a graph of their own in the same way."""
    attributes: View | None = None
    """The released node table and what the adversary knows of it about the targets; None without attributes."""
    seeds: tuple[Ints, Ints] | None = None
    """People whom the adversary has already found: their nodes in ``known``, and in the release."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeMatches:
    """Guesses of identity: for each target a set of released nodes that the attack cannot tell apart."""

    labels: Array
    """A label of each released node; nodes with the same label are one candidate set."""
    guess: Array
    """The label guessed for each target."""
    made: npt.NDArray[np.bool_]
    """Whether there is a guess for the target."""
    detail: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_nodes(cls, nodes: Ints, size: int, **detail: object) -> NodeMatches:
        """One released node for each target; a negative number means no guess."""
        return cls(labels=np.arange(size), guess=nodes, made=nodes >= 0, detail=detail)

    def chance(self, truth: Ints) -> npt.NDArray[np.float64]:
        """The probability that a node drawn from the candidates is the true one (-1: the target was not released)."""
        _, place, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        there = self.made & (truth >= 0)
        own = np.where(there, truth, 0)
        hit = there & (self.labels[own] == self.guess)
        return np.where(hit, 1.0 / counts[place[own]], 0.0)

    def candidates(self) -> Ints:
        """The number of candidates of each target; 0 without a guess."""
        values, counts = np.unique(self.labels, return_counts=True)
        place = np.minimum(np.searchsorted(values, self.guess), len(values) - 1)
        return np.where(self.made & (values[place] == self.guess), counts[place], 0)


class GraphAttack(Part):
    """Base class of attacks on released graphs. The docstring of a subclass is its threat model."""

    discloses: ClassVar[Discloses]
    default: ClassVar[bool] = True
    """Whether the attack runs when a recipe names none."""


class NodeMatching(GraphAttack):
    """An attack on identity: which released node is the target?"""

    discloses: ClassVar[Discloses] = Discloses.IDENTITY

    def seed_count(self, people: int) -> int:
        """Number of people, among so many, whom the adversary has already found."""
        return 0

    @abstractmethod
    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        """Guess the released nodes of the targets."""


class LinkGuessing(GraphAttack):
    """An attack on links: are two known people friends?"""

    discloses: ClassVar[Discloses] = Discloses.LINK

    @abstractmethod
    def linked(self, view: GraphView, pairs: Ints, rng: Rng, progress: Progress = SILENT) -> npt.NDArray[np.int8]:
        """For each pair of nodes of ``view.known``: 1 linked, 0 not linked, -1 no guess."""


class FriendGuessing(GraphAttack):
    """An attack on attributes: what do the friends' released values tell about the target's own value?"""

    discloses: ClassVar[Discloses] = Discloses.ATTRIBUTE

    @abstractmethod
    def values(self, view: GraphView, column: str, rng: Rng) -> pl.Series:
        """The guessed value of each target. ``view.targets`` are released nodes, whose own values are blank."""


class Planting(GraphAttack):
    """An active attack on identity: the adversary adds nodes to the graph before it is released."""

    discloses: ClassVar[Discloses] = Discloses.IDENTITY

    @abstractmethod
    def plant(self, graph: Graph, targets: Ints, rng: Rng) -> tuple[Graph, Any]:
        """The graph with planted nodes after its own ones, and what the adversary remembers of them."""

    @abstractmethod
    def find(self, release: Graph, memory: object, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        """Guess the released nodes of the targets."""


def match_classes(release: Array, known: Array) -> NodeMatches:
    """Candidates are the released nodes with the same signature as the target."""
    values = np.unique(release)
    place = np.minimum(np.searchsorted(values, known), len(values) - 1)
    return NodeMatches(labels=release, guess=known, made=values[place] == known)
