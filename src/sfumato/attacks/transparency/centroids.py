"""Transparency attack on microaggregation: candidate groups per block of columns, intersected."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.features import numbers
from sfumato.attacks.nearest_neighbours import BoxTree, distinct_points
from sfumato.attacks.remasking import WEAK_MASKING, mask_again, proxy, runnable_steps
from sfumato.deadline import batches, quiet
from sfumato.errors import NotApplicable
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["Centroids"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Centroids(Linking):
    """An attacker who knows which columns were microaggregated together intersects the groups a person may belong to.

    Each block of columns was replaced by group means, so a person's masked values in a block are one of the centroids
    near their true values. How often it is the nearest, the second nearest and so on is estimated by microaggregating
    the values that the attacker knows in the same way. The score of a row is the sum over blocks of the logarithm of
    that probability, so rows that are near in one block and impossible in another are excluded. If one block holds all
    columns, there is nothing to intersect, and the k rows of the group remain indistinguishable.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.METHOD
    cheap: ClassVar[bool] = True
    weak_masking: ClassVar = WEAK_MASKING
    examples: ClassVar = ({},)
    reference: ClassVar[str] = (
        "Nin, J., Herranz, J., Torra, V. (2008). On the disclosure risk of multivariate microaggregation. Data & "
        "Knowledge Engineering 67(3). doi:10.1016/j.datak.2008.06.014"
    )

    reach: Annotated[int, Field(ge=1, le=200)] = 20
    """Number of nearest centroids considered per block."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.part_name() == "microaggregate"

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        blocks = _blocks(view)
        chances = self._chances(view, blocks, rng, progress)
        known = [_matrix(view.targets, names, view) for names in blocks]
        seen = [_matrix(view.release.table.frame, names, view) for names in blocks]
        members = [_Block.of(target, released) for target, released in zip(known, seen, strict=True)]
        count = view.release.table.rows
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        draw = rng.child("ties").generator
        near = [block.nearest(self.reach) for block in members]
        floor = [float(np.log(max(chance[-1], 1e-9))) - 3.0 for chance in chances]
        score = np.empty(count)
        done = 0
        for part in batches(progress, "centroids", view.targets.height):
            person = part.start
            score[:] = sum(floor)
            for block, places, chance, low in zip(members, near, chances, floor, strict=True):
                for rank, centroid in enumerate(places[person]):
                    rows = block.rows(int(centroid))
                    score[rows] += np.log(max(chance[rank], 1e-9)) - low - np.log(len(rows))
            best = np.flatnonzero(score >= score.max() - 1e-12)
            row[person] = best[draw.integers(len(best))]
            weight = np.exp(score - score.max())
            confidence[person] = 1 / weight.sum()
            done = part.stop
        detail: dict[str, Any] = {
            "blocks": [list(names) for names in blocks],
            "nearest": [float(chance[0]) for chance in chances],
        }
        return Guesses.of_rows(row, confidence, detail, tried=done)

    def _chances(self, view: View, blocks: list[tuple[str, ...]], rng: Rng, progress: Progress) -> list[Floats]:
        """For each block, how often the true centroid is the nearest, the second nearest, and so on."""
        data = proxy(view)
        if data.rows != view.targets.height:
            # The release is already aggregated and reveals nothing about distances: assume a geometric distribution.
            return [0.6 * np.power(0.4, np.arange(self.reach, dtype=np.float64)) for _ in blocks]
        masked, origin = mask_again(data, runnable_steps(view), rng.child("again"), quiet(progress))
        chances = []
        for names in blocks:
            block = _Block.of(_matrix(data.table.frame[origin], names, view), _matrix(masked, names, view))
            place = np.argmax(block.nearest(self.reach) == block.label[:, None], axis=1)
            inside = (block.nearest(self.reach) == block.label[:, None]).any(axis=1)
            counted = np.bincount(place[inside], minlength=self.reach)[: self.reach] + 0.5
            chances.append(counted / counted.sum())
        return chances


class _Block:
    """One block of columns: its distinct centroids and the rows of each."""

    def __init__(self, known: Floats, centroids: Floats, order: Ints, starts: Ints) -> None:
        self.known, self.centroids, self.order, self.starts = known, centroids, order, starts
        self.label = np.empty(len(order), dtype=np.int64)
        self.label[order] = np.repeat(np.arange(len(centroids)), np.diff(starts))

    @classmethod
    def of(cls, known: Floats, released: Floats) -> _Block:
        spread = known.std(axis=0) if len(known) >= 30 else released.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        centroids, order, starts = distinct_points(released / spread)
        return cls(known / spread, centroids, order, starts)

    def rows(self, centroid: int) -> Ints:
        return self.order[self.starts[centroid] : self.starts[centroid + 1]]

    def nearest(self, reach: int) -> Ints:
        return BoxTree.of(self.centroids).near(self.known, reach)[0]


def _blocks(view: View) -> list[tuple[str, ...]]:
    step = next((step for step in reversed(view.steps) if step["step"] == "microaggregate"), None)
    if step is None:
        raise NotApplicable("The release does not publish a microaggregate step, or the attacker does not know it.")
    parameters = step.get("parameters", {})
    if parameters.get("strata") or parameters.get("fuzzy"):
        raise NotApplicable("Groups were formed within strata or at random.", fix="Use `simulation`.")
    groups = [tuple(name for name in names if name in view.knows) for names, _ in step.get("groups", ())]
    blocks = [names for names in groups if names]
    if not blocks:
        raise NotApplicable("The attacker knows no microaggregated column.", columns=view.knows)
    return blocks


def _matrix(frame: Any, names: tuple[str, ...], view: View) -> Floats:
    columns = []
    for name in names:
        level = numbers(frame[name])
        if level is None or not np.isfinite(level).all():
            raise NotApplicable(
                f"Column `{name}` has missing or non-numeric values.", fix="Use `simulation`.", columns=names
            )
        columns.append(level)
    return np.column_stack(columns)
