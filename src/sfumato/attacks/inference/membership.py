"""Is a person in the data at all? Guessed from how near the release comes to her."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import nearest
from sfumato.attacks.remasking import mask_again, runnable_steps
from sfumato.deadline import quiet
from sfumato.errors import OutOfTime
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Role, Schema

__all__ = ["Membership"]


Floats = npt.NDArray[np.float64]

_ENOUGH = 100
"""Distinct rows from which it can be told how near strangers come."""
_COPIES = 10
"""So many people who stand in the release as they are do so by no accident when strangers do not."""
_STRANGERS = 2000
"""So many rows are looked for among as many others."""


class Membership(Attack):
    """Somebody who knows values of a person says that she is in the data when some released row is unusually near.

    For synthetic and perturbed releases, where being in the file is itself the secret (a register of patients). A
    person's distance to the nearest row is compared with the distances of that row's neighbourhood, so that people in
    crowded places are not taken for members. How near strangers come is seen in the release itself: one half of its
    distinct rows is looked for in the other half. Where the people sought come clearly nearer than that (copies of some
    of them, for example), those who do are said to be members, and else the nearest ``share`` of them; with ``shadows``
    the intruder runs the published steps on random halves of the people he knows, sees how near members
    and others come to what such a half would have given, and takes the threshold that tells them apart best. Half of
    those tried are members; an intruder without the release is right about half.
    """

    discloses: ClassVar[Discloses] = Discloses.MEMBERSHIP
    pairwise: ClassVar[bool] = True
    examples: ClassVar = ({"knows": ["height", "income", "rent", "commute"]},)
    reference: ClassVar[str] = (
        "Houssiau, F. et al. (2022). TAPAS: a toolbox for adversarial privacy auditing of synthetic data. "
        "arXiv:2211.06550. Shokri, R. et al. (2017). doi:10.1109/SP.2017.41"
    )

    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """What share of the people sought the intruder believes to be members."""
    local: bool = True
    """Whether distances are compared with those usual around the row."""
    shadows: Annotated[int, Field(ge=0, le=1000)] = 0
    """How many shadow releases are made to learn the threshold; 0 uses ``share``. Needs published steps."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        limit = self._threshold(view, rng, progress) if self.shadows else None
        score = self._score(view, rng, progress)
        if limit is None and self.local and len(score):
            limit = self._nearer_than_strangers(score, view, rng.child("strangers"), progress)
        if limit is not None:
            gap = np.abs(score - limit) / (np.abs(score - limit).max(initial=0.0) + 1e-12)
            return Guesses(
                member=score <= limit,
                made=np.ones(len(score), dtype=np.bool_),
                confidence=gap,
                detail={"shadows": self.shadows},
                tried=len(score),
            )
        # Ties at the threshold are drawn, so that a release that says nothing gives half.
        order = np.lexsort((rng.child("ties").generator.random(len(score)), score))
        member = np.zeros(len(score), dtype=np.bool_)
        member[order[: round(self.share * len(score))]] = True
        place = np.empty(len(score))
        place[order] = (np.arange(len(score)) + 0.5) / len(score)
        return Guesses(
            member=member,
            made=np.ones(len(score), dtype=np.bool_),
            confidence=np.abs(place - self.share).clip(0, 1),
            tried=len(score),
        )

    def _score(self, view: View, rng: Rng, progress: Progress = SILENT) -> npt.NDArray[np.float64]:
        """Distance to the nearest released row, over the distance usual there; of the targets reached in time."""
        found = points(view, own=False, progress=progress)
        return _nearness(found.targets, found.released, self.local, rng, progress)

    def _nearer_than_strangers(self, score: Floats, view: View, rng: Rng, progress: Progress) -> float | None:
        """The score below which most more people are than strangers would be; None when there are not clearly more."""
        released = np.unique(points(view, own=False, progress=progress).released, axis=0)
        if len(released) < _ENOUGH:
            return None
        order = rng.generator.permutation(len(released))[: 2 * _STRANGERS]
        half = len(order) // 2
        try:
            strangers = _nearness(released[order[:half]], released[order[half:]], True, rng, progress)
        except OutOfTime:
            return None
        if len(strangers) < _ENOUGH // 2:
            return None
        own, others = np.sort(score), np.sort(strangers)
        cuts = np.unique(own)
        more = np.searchsorted(own, cuts, "right") / len(own) - np.searchsorted(others, cuts, "right") / len(others)
        best = int(np.argmax(more))
        copies = int(np.searchsorted(own, 0.0, "right"))
        # Beyond what the largest difference of two samples of one kind reaches once in a thousand times (Smirnov).
        if more[best] > 1.95 * np.sqrt(1 / len(own) + 1 / len(others)):
            limit = float(cuts[best])
        elif copies >= _COPIES and others[0] > 0:
            limit = 0.0
        else:
            return None
        # As many as are expected anyway: their order says it better than a threshold.
        return None if np.searchsorted(own, limit, "right") >= 0.85 * self.share * len(own) else limit

    def _threshold(self, view: View, rng: Rng, progress: Progress) -> float:
        """The score that best separates members of shadow releases from people left out of them."""
        steps = runnable_steps(view)
        schema = Schema(columns={name: Column(role=Role.QUASI) for name in view.knows})
        inside: list[npt.NDArray[np.float64]] = []
        outside: list[npt.NDArray[np.float64]] = []
        people = view.targets.select(view.knows)
        with progress.task("shadow releases", self.shadows) as tick:
            for number in range(self.shadows):
                own = rng.child("shadow", number)
                half = np.sort(own.generator.permutation(people.height)[: people.height // 2])
                data = Dataset(table=view.release.table.with_frame(people[half]), schema=schema)
                masked, _ = mask_again(data, steps, own, quiet(progress))
                release = Release(table=view.release.table.with_frame(masked), manifest=view.release.manifest)
                score = self._score(replace(view, release=release, targets=people), own)
                member = np.zeros(len(score), dtype=np.bool_)
                member[half] = True
                inside.append(score[member])
                outside.append(score[~member])
                tick(1)
        left, right = np.sort(np.concatenate(inside)), np.sort(np.concatenate(outside))
        cuts = np.unique(np.concatenate([left, right]))
        gain = np.searchsorted(left, cuts, "right") / len(left) - np.searchsorted(right, cuts, "right") / len(right)
        return float(cuts[int(np.argmax(gain))])


def _nearness(people: Floats, released: Floats, local: bool, rng: Rng, progress: Progress) -> Floats:
    """Distance of each person to the nearest row, over the distance usual there if ``local``."""
    near = nearest(people, released, rng.generator, progress, "membership")
    score: Floats = np.sqrt(near.distance)
    if local and len(near.row):
        score = score / (_usual(released, near.row) + 1e-12)
    return score


def _usual(released: Any, rows: Any) -> Any:
    """Distance of each of these rows to its nearest other row of the release."""
    from scipy.spatial import cKDTree

    chosen, place = np.unique(rows, return_inverse=True)
    distance, _ = cKDTree(released).query(released[chosen], k=min(2, len(released)), workers=-1)
    return distance.reshape(len(chosen), -1)[:, -1][place]
