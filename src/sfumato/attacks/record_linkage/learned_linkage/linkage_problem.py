"""The problem of learning a distance: people, and how the rows that compete for them differ from their own row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.learned_linkage.distances import Form
from sfumato.kernels import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LinkageProblem:
    """People with known rows, and the feature differences of the competing rows from the true one."""

    gaps: Floats
    """One row per competitor: φ(a − b') − φ(a − b)."""
    starts: Ints
    """Where each person's competitors start. Everybody has one: the reductions over people read no empty segment."""
    alone: int = 0
    """Number of further people without competitors, whom every distance links."""

    def __post_init__(self) -> None:
        assert (np.diff(self.starts) > 0).all(), "a person without competitors has no segment"

    @property
    def people(self) -> int:
        """Number of people with competitors."""
        return len(self.starts) - 1

    @classmethod
    def of(
        cls,
        form: Form,
        known: Floats,
        rows: Floats,
        truth: Ints,
        *,
        pool: Sequence[Ints] | None = None,
    ) -> LinkageProblem:
        """``truth`` is the position of each person's own row among ``rows`` (distinct points).

        All rows compete, or those of ``pool``: the positions of a few near rows per person, which are also the rows
        considered when linking. A person whose true row is not in their pool cannot be linked and is left out.
        """
        gaps, starts, alone = [np.empty((0, len(form.plain)))], [0], 0
        every = np.arange(len(rows))
        for number, (person, own) in enumerate(zip(known, truth, strict=True)):
            competitors = every if pool is None else pool[number]
            if pool is not None and own not in competitors:
                continue
            gap = rows[competitors[competitors != own]] - person
            if len(gap) == 0:
                alone += 1
                continue
            gaps.append(form.features(gap) - form.features(rows[own] - person))
            starts.append(starts[-1] + len(gap))
        return cls(gaps=np.ascontiguousarray(np.vstack(gaps)), starts=np.array(starts, dtype=np.int64), alone=alone)

    def margins(self, theta: Floats) -> Floats:
        """The margin of each person: how much nearer the true row is than the nearest competitor."""
        if self.people == 0:
            return np.empty(0)
        least: Floats = np.minimum.reduceat(self.gaps @ theta, self.starts[:-1])
        return least

    def linked(self, theta: Floats) -> int:
        return int((self.margins(theta) > 0).sum())

    def nearest(self, theta: Floats, count: int) -> Ints:
        """The positions of each person's ``count`` nearest competitors under ``theta``."""
        return _smallest(self.gaps @ theta, self.starts, count)[0]

    def owner(self, places: Ints) -> Ints:
        """The person of each of these competitor positions."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def credit(self, form: Form, theta: Floats) -> Floats:
        """The share of each column in the margins of the people linked under ``theta``.

        The margin of a linked person is a sum over parameters, and so over columns; shares sum to one. A column with a
        negative contribution has a share of zero.
        """
        if len(self.gaps) == 0:
            return np.full(form.width, 1 / form.width)
        score = self.gaps @ theta
        worst = nearest_competitors(score, self.starts)
        linked = worst[score[worst] > 0]
        relative = self.gaps[linked] * theta / score[linked, None]
        parts = np.maximum(np.median(relative @ form.shares, axis=0) if len(linked) else np.zeros(form.width), 0.0)
        credit: Floats = parts / parts.sum() if parts.sum() > 0 else np.full(form.width, 1 / form.width)
        return credit

    def hardest(self, theta: Floats, count: int) -> LinkageProblem:
        """The problem with only the ``count`` nearest competitors of each person under ``theta``."""
        kept, starts = _smallest(self.gaps @ theta, self.starts, count)
        return replace(self, gaps=self.gaps[kept], starts=starts)


@kernel()
def _smallest(score: Floats, starts: Ints, count: int) -> tuple[Ints, Ints]:  # pragma: no cover - compiled
    """Positions of the ``count`` smallest scores of each person, and where each person's start."""
    kept = np.empty(len(score), dtype=np.int64)
    edges = np.zeros(len(starts), dtype=np.int64)
    lowest = np.empty(count)
    total = 0
    for person in range(len(starts) - 1):
        part = score[starts[person] : starts[person + 1]]
        lowest[:] = np.inf
        for value in part:
            slot = count - 1
            if value < lowest[slot]:
                while slot > 0 and lowest[slot - 1] > value:
                    lowest[slot] = lowest[slot - 1]
                    slot -= 1
                lowest[slot] = value
        limit = lowest[count - 1]
        taken = 0
        for place in range(len(part)):
            if part[place] <= limit and taken < count:
                kept[total] = starts[person] + place
                total += 1
                taken += 1
        edges[person + 1] = total
    return kept[:total].copy(), edges


@kernel()
def nearest_competitors(score: Floats, starts: Ints) -> Ints:  # pragma: no cover - compiled
    """The position of each person's nearest competitor."""
    lowest = np.empty(len(starts) - 1, dtype=np.int64)
    for person in range(len(starts) - 1):
        lowest[person] = starts[person]
        for place in range(starts[person], starts[person + 1]):
            if score[place] < score[lowest[person]]:
                lowest[person] = place
    return lowest
