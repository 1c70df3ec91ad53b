"""Evaluation of attacks on released graphs: main, baseline and control arms.

| arm | identity | link | attribute |
|---|---|---|---|
| main | the attack on the release | the same | the same |
| baseline | a released node at random | best guess from known common friends | the most frequent value |
| control | the attack on the release with all edges switched | the same | the same |

The control shows what the degrees alone disclose: in it every person keeps their number of friends, and the friends are
drawn at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.attacks.base import View
from sfumato.attacks.evaluation.outcome import Arm, Outcome
from sfumato.attacks.graph._base import (
    FriendGuessing,
    GraphAttack,
    GraphView,
    LinkGuessing,
    NodeMatches,
    NodeMatching,
    Planting,
)
from sfumato.data.table import Table
from sfumato.deadline import check_deadline
from sfumato.errors import BadParameter, NotApplicable
from sfumato.graphs.edge_labels import carry_labels
from sfumato.graphs.edge_switching import switch_edges
from sfumato.graphs.graph import Graph, edge_keys
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphScenario:
    """The original, the release, and the truth that the adversary does not have."""

    original: Graph
    release: Graph
    lineage: Ints
    """For each released node the original one. Confidential."""
    protect: Callable[[Graph, Rng], Graph] | None = None
    """The published method, which keeps the numbers of nodes."""
    secrets: Sequence[str] = ()
    """Columns of the node table with sensitive values."""
    columns: Mapping[str, Any] = field(default_factory=dict)
    """The released columns of the node table as in a manifest, with their hierarchies."""
    clusters: Ints | None = None
    """For a generalized graph: the cluster of each released node. ``release`` is then one of the possible graphs."""

    @property
    def truth(self) -> Ints:
        """For each original node the released one; -1 if it was not released."""
        place = np.full(self.original.size, -1, dtype=np.int64)
        place[self.lineage] = np.arange(len(self.lineage))
        return place

    def attributes(self, targets: Ints) -> View | None:
        """The node table as an attacker sees it who knows the quasi-identifiers of the targets.

        The first column of the original is the key of the nodes.
        """
        released, known = self.release.nodes, self.original.nodes
        names = tuple(name for name in known.columns[1:] if name in released.columns and name not in self.secrets)
        if not names:
            return None
        table = Release(table=Table(frame=released), manifest={"columns": dict(self.columns)})
        return View(release=table, targets=known.select(names)[targets], knows=names)


def evaluate_graph_attack(
    attack: GraphAttack, scenario: GraphScenario, rng: Rng, *, n_targets: int = 5000, progress: Progress = SILENT
) -> list[Outcome]:
    """Run an attack; one outcome, or one for each sensitive column."""
    if n_targets < 1:
        raise BadParameter(f"An attack needs at least one target, not {n_targets}.", n_targets=n_targets)
    own = rng.child("attack", attack.part_name())
    if not scenario.release.edge_count or not scenario.original.edge_count:
        raise NotApplicable("The graph has no edges.")
    match attack:
        case NodeMatching():
            return [_identity(attack, scenario, own, n_targets, progress)]
        case Planting():
            return [_planted(attack, scenario, own, n_targets, progress)]
        case LinkGuessing():
            return [_links(attack, scenario, own, n_targets, progress)]
        case FriendGuessing():
            columns = [name for name in scenario.secrets if name in scenario.release.nodes.columns]
            if not columns:
                raise NotApplicable(
                    "No sensitive column of the node table is released.", fix="Give a column the role `sensitive`."
                )
            return [_attribute(attack, scenario, name, own, n_targets, progress) for name in columns]
        case _:
            raise NotApplicable(f"{attack.part_name()} is of a kind that cannot be evaluated here.")


def _outcome(attack: GraphAttack, arms: dict[str, Any], **more: Any) -> Outcome:
    return Outcome(
        attack=attack.part_name(),
        discloses=attack.discloses,
        threat=attack.summary(),
        parameters=attack.to_dict(),
        truth="node map",
        **arms,
        **more,
    )


def _switched(release: Graph, rng: Rng) -> Graph:
    random = rng.child("control").generator
    return carry_labels(release, switch_edges(release, 1.0, random), random)


def _identity(attack: NodeMatching, scenario: GraphScenario, rng: Rng, wanted: int, progress: Progress) -> Outcome:
    truth, random = scenario.truth, rng.child("targets").generator
    order = random.permutation(scenario.original.size)
    seeds = None
    if count := attack.seed_count(scenario.original.size):
        linked = np.argsort(-scenario.original.degrees, kind="stable")
        pool = linked[truth[linked] >= 0][: max(4 * count, 20)]
        chosen = random.permutation(pool)[:count]
        seeds = chosen, truth[chosen]
        order = order[~np.isin(order, chosen)]
    targets = order[:wanted]
    if not len(targets):
        raise NotApplicable("There is nobody left to look for.", fix="Use fewer seeds.")
    view = GraphView(
        release=scenario.release, known=scenario.original, targets=targets, protect=scenario.protect, seeds=seeds,
        attributes=scenario.attributes(targets),
    )  # fmt: skip
    found = attack.match(view, rng.child("main"), progress)
    check_deadline(progress)
    control = attack.match(replace(view, release=_switched(scenario.release, rng)), rng.child("main"), progress)
    if scenario.clusters is not None:
        found, control = (_whole_cluster(matches, scenario.clusters) for matches in (found, control))
    return _node_outcome(attack, found, control, truth[targets], targets, scenario.release.size)


def _whole_cluster(found: NodeMatches, clusters: Ints) -> NodeMatches:
    """Members of a released cluster cannot be told apart: a guessed node stands for its whole cluster."""
    values, first = np.unique(found.labels, return_index=True)
    place = np.minimum(np.searchsorted(values, found.guess), len(values) - 1)
    there = found.made & (values[place] == found.guess)
    return NodeMatches(labels=clusters, guess=clusters[first[place]], made=there, detail=found.detail)


def _node_outcome(
    attack: GraphAttack, found: NodeMatches, control: NodeMatches, truth: Ints, targets: Ints, size: int
) -> Outcome:
    hits, candidates = found.chance(truth), found.candidates()
    alone = candidates == 1
    arms = {
        "main": Arm(hits=float(hits.sum()), trials=len(targets)),
        "baseline": Arm(hits=len(targets) / size, trials=len(targets)),
        "control": Arm(hits=float(control.chance(truth).sum()), trials=len(targets)),
    }
    return _outcome(
        attack, arms, claims=int(found.made.sum()), certain=int(alone.sum()), certain_hits=int(hits[alone].sum()),
        rows=targets, hit=hits, confidence=np.where(candidates > 0, 1 / np.maximum(candidates, 1), 0.0),
        detail=dict(found.detail),
    )  # fmt: skip


def _planted(attack: Planting, scenario: GraphScenario, rng: Rng, wanted: int, progress: Progress) -> Outcome:
    if scenario.protect is None:
        raise NotApplicable(
            "An active attack needs the method: the graph with planted nodes is protected again.",
            fix="Attack with the recipe of the release.",
        )
    random, original = rng.child("targets").generator, scenario.original
    targets = random.permutation(original.size)[:wanted]
    planted, memory = attack.plant(original, targets, rng.child("plant"))
    protected = scenario.protect(planted, rng.child("protect"))
    order = random.permutation(protected.size)
    truth = np.empty(len(order), dtype=np.int64)
    truth[order] = np.arange(len(order))
    targets = targets[: len(memory.codes)]
    release = protected.reordered(order)
    found = attack.find(release, memory, rng.child("main"), progress)
    control = attack.find(_switched(release, rng), memory, rng.child("main"), progress)
    return _node_outcome(attack, found, control, truth[targets], targets, release.size)


def _links(attack: LinkGuessing, scenario: GraphScenario, rng: Rng, wanted: int, progress: Progress) -> Outcome:
    random, original = rng.child("targets").generator, scenario.original
    edges = original.edges()
    half = max(1, min(wanted // 2, len(edges) // 20))
    friends = random.permutation(edges)[:half]
    others = _friends_of_friends(original, half, random)
    half = min(len(friends), len(others))
    if not half:
        raise NotApplicable("No two people with a common friend are not friends themselves.")
    pairs = np.concatenate([friends[:half], others[:half]])
    truth = np.repeat([1, 0], half)
    asked = edge_keys(friends[:half, 0], friends[:half, 1], original.size)
    gone = np.isin(edge_keys(edges[:, 0], edges[:, 1], original.size), asked)
    known = original.with_some_edges(~gone)
    view = GraphView(release=scenario.release, known=known, targets=np.unique(pairs), protect=scenario.protect)
    matrix = known.matrix()
    common = np.asarray(matrix[pairs[:, 0]].multiply(matrix[pairs[:, 1]]).sum(axis=1)).ravel()
    blind = max(float(((common >= cut) == truth).mean()) for cut in (*np.unique(common), np.inf))

    def right(guess: Any) -> Any:
        # Without a guess the attack tosses a coin: half of the pairs are friends.
        return np.where(guess < 0, 0.5, (guess == truth).astype(np.float64))

    main = attack.linked(view, pairs, rng.child("main"), progress)
    control = attack.linked(replace(view, release=_switched(scenario.release, rng)), pairs, rng.child("main"), progress)
    count = len(pairs)
    arms = {
        "main": Arm(hits=float(right(main).sum()), trials=count),
        "baseline": Arm(hits=blind * count, trials=count),
        "control": Arm(hits=float(right(control).sum()), trials=count),
    }
    return _outcome(attack, arms, claims=int((main >= 0).sum()), rows=pairs[:, 0], hit=right(main),
                    confidence=np.ones(count), detail={"pairs": count})  # fmt: skip


def _friends_of_friends(graph: Graph, count: int, random: np.random.Generator) -> Ints:
    """Pairs of people who have a common friend and are not friends, each pair once."""
    middle = random.choice(graph.size, size=count * 20, p=graph.degrees / graph.degrees.sum())
    ends = [graph.indices[graph.indptr[middle] + random.integers(graph.degrees[middle])] for _ in range(2)]
    apart = (ends[0] != ends[1]) & ~graph.has_edges(ends[0], ends[1])
    keys = np.unique(edge_keys(ends[0][apart], ends[1][apart], graph.size))
    keys = random.permutation(keys)[:count]
    return np.column_stack([keys // graph.size, keys % graph.size])


def _attribute(
    attack: FriendGuessing, scenario: GraphScenario, column: str, rng: Rng, wanted: int, progress: Progress
) -> Outcome:
    true = scenario.original.nodes[column].cast(pl.String).gather(scenario.lineage)
    held = np.flatnonzero(true.is_not_null().to_numpy())
    targets = rng.child("targets").generator.permutation(held)[:wanted]
    if not len(targets):
        raise NotApplicable(f"Nobody has a value of `{column}`.")
    values = true.gather(targets)
    released = scenario.release.nodes[column].cast(pl.String).to_list()
    hidden = pl.Series(column, [None if row in set(targets.tolist()) else value for row, value in enumerate(released)])
    nodes = scenario.release.nodes.with_columns(hidden)
    release = replace(scenario.release, nodes=nodes)
    view = GraphView(release=release, known=release, targets=targets)
    if hidden.null_count() == len(hidden):
        raise NotApplicable(f"Everybody's value of `{column}` would be a target.", fix="Use fewer targets.")
    most = hidden.drop_nulls().mode().sort()[0]

    def hits(guess: pl.Series) -> Any:
        return (guess == values).fill_null(False).to_numpy().astype(np.float64)

    main = hits(attack.values(view, column, rng.child("main")))
    check_deadline(progress)
    control = hits(attack.values(replace(view, release=_switched(release, rng)), column, rng.child("main")))
    count = len(targets)
    arms = {
        "main": Arm(hits=float(main.sum()), trials=count),
        "baseline": Arm(hits=float((values == most).sum()), trials=count),
        "control": Arm(hits=float(control.sum()), trials=count),
    }
    return _outcome(
        attack, arms, claims=count, secret=column, rows=scenario.lineage[targets], hit=main, confidence=np.ones(count)
    )
