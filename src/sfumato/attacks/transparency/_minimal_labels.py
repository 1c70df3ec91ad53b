"""Minimality: what a label of a hierarchy says because the search would have kept a finer one if it could.

The people of a group with the lowest common group of a hierarchy are not all in the same branch beneath it. If an
optimal search chose one level for the whole table, one level lower some class would have 1 to k - 1 people.

The adversary knows the published hierarchies and considers all proportions of the branches beneath a label equally
likely, weighted by their numbers of values. Only the branches directly beneath a label are used.

References: Cohen, A. (2022). Attacks on deidentification's defenses. USENIX Security 2022. Wong, R. et al. (2007).
Minimality attack in privacy preserving data publishing. VLDB 2007.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import Predicate
from sfumato.attacks.value_parser import bounds
from sfumato.dataset.hierarchy import BoundHierarchy, hierarchy_from_dict
from sfumato.errors import SfumatoError
from sfumato.masking.base import method_of
from sfumato.release import Release

Floats = npt.NDArray[np.float64]

_GAIN = 1.1
"""A predicate is used if minimality makes it at least this many times as likely to single somebody out."""
_NUMBERS = 20_000
"""Largest number of whole numbers between released bounds for which intervals are divided."""
_SURE = 0.999


@dataclass(frozen=True, kw_only=True)
class LikelyPredicate:
    """A predicate on an equivalence class, and how likely it is true of exactly one person."""

    predicate: Predicate
    chance: float
    """The probability that the predicate is true of one person."""
    by_chance: float
    """The same without the knowledge that labels are minimal."""


@dataclass(frozen=True, kw_only=True)
class _Branches:
    """The branches directly beneath a label, and the probabilities of their numbers of people.

    All proportions are equally likely, weighted by the numbers of values (a Dirichlet distribution).
    """

    labels: tuple[Any, ...]
    weight: Floats

    @cached_property
    def ranked(self) -> int:
        """The branch in which a single person is most likely: the one with the fewest values."""
        return int(np.argmin(self.weight))

    def people(self, rows: int, counts: Sequence[int]) -> Floats:
        """For each branch the probability that it has one of these numbers of people among so many rows."""
        from scipy.special import betaln, gammaln

        rest = self.weight.sum() - self.weight
        total = np.zeros(len(self.weight))
        for count in counts:
            ways = gammaln(rows + 1) - gammaln(count + 1) - gammaln(rows - count + 1)
            total += np.exp(ways + betaln(count + self.weight, rows - count + rest) - betaln(self.weight, rest))
        return total

    def divided(self, rows: int) -> float:
        """The probability that not all people are in one branch."""
        return 1.0 - float(self.people(rows, [rows]).sum())

    def has_few(self, rows: int, k: int) -> float:
        """An upper bound of the probability that some branch has people, but fewer than k."""
        few = float(self.people(rows, range(1, min(k, rows))).sum())
        return min(1.0, few, self.divided(rows)) if rows > 1 else 1.0


def minimality_findings(
    release: Release, names: Sequence[str], known: pl.DataFrame, steps: Sequence[Mapping[str, Any]]
) -> list[LikelyPredicate]:
    """Predicates on equivalence classes that minimality makes likely to be true of one person."""
    step = next((step for step in reversed(steps) if method_of(step).minimal_labels), None)
    if step is None or any(not other.get("truthful", False) for other in steps):
        return []
    levels, k = step.get("levels"), _only_k(release.manifest)
    if levels is not None and (k is None or not step.get("optimal") or step["parameters"].get("suppression")):
        return []
    groups = release.table.frame.select(names).group_by(names, maintain_order=True).len("\x00rows")
    rows = groups["\x00rows"].to_list()
    found: list[LikelyPredicate] = []
    for name in names:
        least = step.get("parameters", {}).get("lowest", {}).get(name, 0)
        if levels is not None and levels.get(name, 0) <= least:
            continue
        beneath = branches_beneath(release, name, known.schema[name])
        of_group = [beneath.get(label) for label in groups[name].to_list()]
        event = [1.0] * len(rows)
        if levels is not None:
            assert k is not None
            few = [branches.has_few(n, k) if branches else 1.0 for branches, n in zip(of_group, rows, strict=True)]
            event = [1.0 - float(np.prod(1.0 - np.array(few)))] * len(rows)
        for place, (branches, n) in enumerate(zip(of_group, rows, strict=True)):
            if branches is None or n < 2:
                continue
            likely = event[place] if levels is not None else branches.divided(n)
            one = float(branches.people(n, [1])[branches.ranked])
            if 0 < _GAIN * likely <= 1:
                label = branches.labels[branches.ranked]
                conditions = tuple(
                    (column, "=", label if column == name else groups[column][place])
                    for column in names
                    if column == name or groups[column][place] is not None
                )
                found.append(
                    LikelyPredicate(
                        predicate=Predicate(conditions=conditions), chance=min(_SURE, one / likely), by_chance=one
                    )
                )
    return found


def _only_k(manifest: Mapping[str, Any]) -> int | None:
    """The k of a release whose only model is k-anonymity."""
    models = list(manifest.get("models") or ())
    if len(models) != 1 or "k-anonymity" not in models[0]:
        return None
    stated = models[0]["k-anonymity"]
    return int(stated["k"] if isinstance(stated, Mapping) else stated)


def branches_beneath(release: Release, name: str, kind: pl.DataType) -> dict[object, _Branches]:
    """For each released label that a published hierarchy divides: its branches."""
    bound = _domain(release, name, kind)
    if bound is None:
        return {}
    found: dict[object, _Branches] = {}
    for finer, coarser in zip(bound.levels, bound.levels[1:], strict=False):
        parent = np.full(finer.size, -1, dtype=np.int64)
        parent[finer.codes] = coarser.codes
        order = np.argsort(parent, kind="stable")
        edges = np.searchsorted(parent[order], np.arange(coarser.size + 1))
        for code, label in enumerate(coarser.labels.to_list()):
            branches = order[edges[code] : edges[code + 1]]
            if len(branches) > 1:  # the lowest level at which the label divides
                weight = finer.leaves_under[branches].astype(np.float64)
                labels = tuple(finer.labels.gather(branches).to_list())
                found.setdefault(label, _Branches(labels=labels, weight=weight * len(branches) / weight.sum()))
    return found


def _domain(release: Release, name: str, kind: pl.DataType) -> BoundHierarchy | None:
    """The published hierarchy on its own values, or on the whole numbers between released bounds."""
    declared = release.manifest.get("columns", {}).get(name, {}).get("hierarchy")
    if not declared:
        return None
    values = pl.Series(name, [], dtype=kind)
    if kind.is_integer():
        spans = [bounds(label) for label in release.table.column(name).unique().drop_nulls().cast(pl.String).to_list()]
        ends = [end for span in spans if span is not None for end in span if np.isfinite(end)]
        if ends and max(ends) - min(ends) <= _NUMBERS:
            values = pl.Series(name, np.arange(int(min(ends)), int(max(ends)) + 1)).cast(kind, strict=False)
    try:
        hierarchy = hierarchy_from_dict(declared)
        assert hierarchy is not None
        bound = hierarchy.bind(name, values.drop_nulls())
    except (SfumatoError, ValueError, OSError):
        return None
    return bound if len(bound.leaves) > 1 else None
