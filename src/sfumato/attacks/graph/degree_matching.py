"""Attack: find people by the number of their friends."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from sfumato.arrays import Array, Ints
from sfumato.attacks.candidate_rows import match
from sfumato.attacks.graph._base import GraphView, NodeMatches, NodeMatching
from sfumato.data.row_codes import number_rows
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.graphs.signatures import colours
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng


class DegreeMatching(NodeMatching):
    """An attacker knows how many friends the target has, and their attributes, and looks for a node with both.

    Where a node table is released, only nodes whose attributes fit the target are candidates. If none of them has the
    degree, those with the nearest degree are left. Where relations or values of edges are released, the attacker knows
    how many friends of each kind the target has, and uses the degree alone if no candidate has these.
    """

    reference = "Hay et al. (2008), doi:10.14778/1453856.1453873"

    def match(self, view: GraphView, rng: Rng, progress: Progress = SILENT) -> NodeMatches:
        degrees, wanted = view.release.degrees, view.known.degrees[view.targets]
        kinds, own = degrees.astype(np.uint64), wanted.astype(np.uint64)
        if view.release.labels is not None and view.known.labels is not None:
            kinds, own = colours(view.release, 0), colours(view.known, 0)[view.targets]
        fitting, groups = _by_attributes(view)
        guess = np.full(len(wanted), -1, dtype=np.int64)
        for number, (people, nodes) in enumerate(groups):
            if number % 1000 == 0:
                check_deadline(progress)
            if len(nodes):
                values = np.unique(degrees[nodes])
                place = np.clip(np.searchsorted(values, wanted[people]), 1, max(len(values) - 1, 1))
                low, high = values[place - 1], values[np.minimum(place, len(values) - 1)]
                nearest = np.where(np.abs(wanted[people] - low) <= np.abs(high - wanted[people]), low, high)
                exact = _drawn(kinds[nodes], own[people], rng)
                guess[people] = nodes[np.where(exact >= 0, exact, _drawn(degrees[nodes], nearest, rng))]
        labels = number_rows([fitting, np.unique(kinds, return_inverse=True)[1]])[0].astype(np.int64)
        return NodeMatches(labels=labels, guess=np.where(guess >= 0, labels[guess], -1), made=guess >= 0)


def _by_attributes(view: GraphView) -> tuple[Ints, Iterable[tuple[Ints, Ints]]]:
    """The attribute class of each released node, and groups of targets with the nodes whose attributes fit them."""
    everybody = np.zeros(view.release.size, dtype=np.int64)
    if view.attributes is not None:
        with suppress(NotApplicable):
            matched = match(view.attributes, in_release=True)
            everybody[matched.order] = np.repeat(np.arange(len(matched.starts) - 1), np.diff(matched.starts))
            return everybody, (
                (people, np.concatenate([np.empty(0, np.int64), *(matched.rows(one) for one in found.classes)]))
                for people, found in matched.candidates()
            )
    return everybody, [(np.arange(len(view.targets)), np.arange(view.release.size))]


def _drawn(values: Array, wanted: Array, rng: Rng) -> Ints:
    """For each wanted value the place of one of those that are equal to it, at random; -1 if there is none."""
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values[order], wanted, side="left")
    count = np.searchsorted(values[order], wanted, side="right") - first
    place = first + (rng.generator.random(len(wanted)) * count).astype(np.int64)
    return np.where(count > 0, order[np.minimum(place, len(order) - 1)], -1)
