"""Is a person in the data at all? Guessed from how near the release comes to her."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from tacit.attack.attack import Attack, Discloses, Guesses, View
from tacit.attack.features import points
from tacit.attack.nearest import nearest
from tacit.progress import SILENT, Progress
from tacit.rng import Rng

__all__ = ["Membership"]


class Membership(Attack):
    """Somebody who knows values of a person says that she is in the data when some released row is unusually near.

    For synthetic and perturbed releases, where being in the file is itself the secret (a register of patients). A
    person's distance to the nearest row is compared with the distances of that row's neighbourhood, so that people in
    crowded places are not taken for members. The nearest ``share`` of the targets are said to be members. Half of
    those tried are members; an intruder without the release is right about half.
    """

    discloses: ClassVar[Discloses] = Discloses.MEMBERSHIP
    examples: ClassVar = ({"knows": ["height", "income", "rent", "commute"]},)
    reference: ClassVar[str] = (
        "Houssiau, F. et al. (2022). TAPAS: a toolbox for adversarial privacy auditing of synthetic data. "
        "arXiv:2211.06550. Shokri, R. et al. (2017). doi:10.1109/SP.2017.41"
    )

    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """What share of the people sought the intruder believes to be members."""
    local: bool = True
    """Whether distances are compared with those usual around the row."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        found = points(view, own=False)
        with progress.task("membership", 1) as tick:
            near = nearest(found.targets, found.released, rng.generator)
            score = np.sqrt(near.distance)
            if self.local:
                score = score / (_usual(found.released, near.row, rng) + 1e-12)
            tick(1)
        # Ties at the threshold are drawn, so that a release that says nothing gives half.
        order = np.lexsort((rng.child("ties").generator.random(len(score)), score))
        member = np.zeros(len(score), dtype=np.bool_)
        member[order[: round(self.share * len(score))]] = True
        place = np.empty(len(score))
        place[order] = (np.arange(len(score)) + 0.5) / len(score)
        return Guesses(
            member=member, made=np.ones(len(score), dtype=np.bool_), confidence=np.abs(place - self.share).clip(0, 1)
        )


def _usual(released: Any, rows: Any, rng: Rng) -> Any:
    """Distance of each of these rows to its nearest other row of the release."""
    from scipy.spatial import cKDTree

    chosen, place = np.unique(rows, return_inverse=True)
    distance, _ = cKDTree(released).query(released[chosen], k=min(2, len(released)), workers=-1)
    return distance.reshape(len(chosen), -1)[:, -1][place]
