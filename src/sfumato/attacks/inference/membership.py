"""Membership inference from the distance to the nearest released row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Stage, View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import BoxTree, nearest
from sfumato.attacks.remasking import run_steps, runnable_steps
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.deadline import quiet
from sfumato.errors import OutOfTime
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]

_MIN_ROWS = 100
"""Minimum number of distinct rows from which distances of non-members are estimated."""
_MIN_COPIES = 10
"""This many targets at distance zero are no coincidence if no non-member is at distance zero."""
_NON_MEMBERS = 2000
"""Number of rows that are compared with as many others to estimate the distances of non-members."""


class Membership(Attack):
    """An attacker who knows values of a person infers membership if some released row is unusually close to them.

    The attack is meant for synthetic and perturbed releases in which membership itself is sensitive (a register of
    patients). The distance of a person to the nearest row is divided by the distances in the neighbourhood of that row,
    so that people in dense regions are not mistaken for members. Distances of non-members are estimated from the
    release: half of its distinct rows are compared with the other half. If the targets are clearly closer than that
    (copies of some of them, for example), the closer ones are guessed to be members; otherwise the nearest ``share`` of
    them. With ``shadows`` the attacker applies the published steps to random halves of the known people, measures the
    distances of members and non-members to these shadow releases, and uses the threshold that separates them best. Half
    of the targets are members, so a random guess is correct for half of them.
    """

    discloses: ClassVar[Discloses] = Discloses.MEMBERSHIP
    stage: ClassVar[Stage] = Stage.POPULATION
    order_in_stage: ClassVar[int] = 1
    pairwise: ClassVar[bool] = True
    examples = ({"knows": ["height", "income", "rent", "commute"]},)
    reference: ClassVar[str] = (
        "Houssiau, F. et al. (2022). TAPAS: a toolbox for adversarial privacy auditing of synthetic data. "
        "arXiv:2211.06550. Shokri, R. et al. (2017). doi:10.1109/SP.2017.41"
    )

    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Share of the targets that the attacker believes to be members."""
    local: bool = True
    """Whether distances are divided by those in the neighbourhood of the row."""
    shadows: Annotated[int, Field(ge=0, le=1000)] = 0
    """Number of shadow releases from which the threshold is learned; 0 uses ``share``. Needs published steps."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        return (cls(),) if scenario.has_non_members else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        limit = self._threshold(view, rng, progress) if self.shadows else None
        score = self._score(view, rng, progress)
        if limit is None and self.local and len(score):
            limit = self._closer_than_non_members(score, view, rng.child("strangers"), progress)
        if limit is not None:
            gap = np.abs(score - limit) / (np.abs(score - limit).max(initial=0.0) + 1e-12)
            return Guesses(
                member=score <= limit,
                made=np.ones(len(score), dtype=np.bool_),
                confidence=gap,
                detail={"shadows": self.shadows},
                tried=len(score),
            )
        # Ties at the threshold are broken at random, so that an uninformative release gives one half.
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
        """Relative distance to the nearest released row, of the targets reached in time."""
        features = points(view, own=False, progress=progress)
        return _nearness(features.targets, features.released, self.local, rng, progress)

    def _closer_than_non_members(self, score: Floats, view: View, rng: Rng, progress: Progress) -> float | None:
        """The score that separates the targets best from non-members; None if they do not differ significantly."""
        released = np.unique(points(view, own=False, progress=progress).released, axis=0)
        if len(released) < _MIN_ROWS:
            return None
        order = rng.generator.permutation(len(released))[: 2 * _NON_MEMBERS]
        half = len(order) // 2
        try:
            non_members = _nearness(released[order[:half]], released[order[half:]], True, rng, progress)
        except OutOfTime:
            return None
        if len(non_members) < _MIN_ROWS // 2:
            return None
        own, others = np.sort(score), np.sort(non_members)
        cuts = np.unique(own)
        more = np.searchsorted(own, cuts, "right") / len(own) - np.searchsorted(others, cuts, "right") / len(others)
        best = int(np.argmax(more))
        copies = int(np.searchsorted(own, 0.0, "right"))
        # The two-sample Kolmogorov–Smirnov statistic, significant at the level 0.001.
        if more[best] > 1.95 * np.sqrt(1 / len(own) + 1 / len(others)):
            limit = float(cuts[best])
        elif copies >= _MIN_COPIES and others[0] > 0:
            limit = 0.0
        else:
            return None
        # About as many as expected: then the order of the scores is better than a threshold.
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
                data = Data(table=view.release.table.with_frame(people[half]), schema=schema)
                masked = run_steps(data, steps, own, quiet(progress))[0]
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
    """Distance of each target to the nearest row, relative to the row's neighbourhood if ``local``."""
    near = nearest(people, released, rng.generator, progress, "membership")
    score: Floats = np.sqrt(near.distance)
    if local and len(near.row):
        score = score / (_usual(released, near.row) + 1e-12)
    return score


def _usual(released: Any, rows: Any) -> Any:
    """Distance of each of these rows to its nearest other row of the release."""
    chosen, place = np.unique(rows, return_inverse=True)
    distance = BoxTree.of(released).near(released[chosen], 2)[1]
    return np.sqrt(distance[:, -1][place])
