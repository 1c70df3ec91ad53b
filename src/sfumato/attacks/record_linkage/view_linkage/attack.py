"""Record linkage over several views of the data, with different rows for different people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.record_linkage._near_rows import different_rows, near_rows
from sfumato.attacks.record_linkage.view_linkage.adapt import adapted
from sfumato.attacks.record_linkage.view_linkage.columns import columns_of
from sfumato.attacks.record_linkage.view_linkage.views import VIEWS, Features
from sfumato.deadline import check_deadline, split_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_FEW_EDGES = 30_000
"""Pairs of person and near row among which different rows are assigned while a view is selected."""
_MOST_COMPETING = 10_000
"""Maximum number of targets that are assigned together."""
_COMPETING = 0.2
"""Share of the rows for which there must be a target, for an assignment to exclude rows."""
_ROUNDS = 3
"""Number of times that the distance is adapted to the differences of the pairs found so far."""
_MIN_PAIRS = 5
"""Minimum number of pairs per feature from which differences are estimated."""


class ViewLinkage(Linking):
    """An attacker who knows many people looks for near rows in several views of the data, and names a row for each.

    Masking that hides people in one view of the data may leave them close to their rows in another. The views are:
    standardized values; ranks (any change of scale is undone); logarithms; the known values on the scale of the release
    (logarithms, roots, squares, reversed order); values, logarithms and ranks in uncorrelated units (Mahalanobis
    distance, for correlated noise); differences between the values of a person (intervals between dates, for a common
    shift); ratios of the amounts of a person (for a common factor); digits behind the decimal point, time of day and
    weekday; the distance from the mean in uncorrelated units (for rotations and principal components); and the sorted
    values of a row (for values exchanged between columns).

    With ``adapt`` the attacker also learns from the pairs found first how far each column was moved and
    which moved together, without being told which pairs are right.

    "strongest" selects the view on a quarter of the targets (at most 1,000), tries to adapt the best four, and is
    evaluated on the others, so that the choice among views is not counted as risk. If the attacker knows at least a
    fifth of the people, different people get different rows at minimum total distance, among the near rows of each.
    Only rows that agree in the columns that no published step changed are considered. The attack is no upper bound: a
    view that is not in the list may disclose more.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SIMILARITY
    order_in_stage: ClassVar[int] = 2
    pairwise: ClassVar[bool] = True
    min_targets: ClassVar[int] = 10_000
    main: ClassVar[str] = "view"
    examples = ({}, {"view": "whitened values", "adapt": True})
    reference: ClassVar[str] = (
        "Torra, V., Abowd, J. M., Domingo-Ferrer, J. (2006). Using Mahalanobis distance-based record linkage for "
        "disclosure risk assessment. doi:10.1007/11930242_20. Herranz, J. et al. (2015). "
        "doi:10.1016/j.datak.2015.07.009"
    )

    view: Literal[
        "strongest",
        "values",
        "ranks",
        "logarithms",
        "rescaled",
        "whitened values",
        "whitened logarithms",
        "whitened ranks",
        "noise covariance",
        "noise covariance of logarithms",
        "differences",
        "ratios",
        "residues",
        "norms",
        "sorted values",
    ] = "strongest"
    """The view in which near rows are looked for. "strongest" selects it, and whether to adapt."""
    adapt: bool = False
    """Whether the distance is adapted to the differences of the pairs found first."""
    edges: Annotated[int, Field(ge=100, le=10_000_000)] = 120_000
    """Approximate number of pairs of person and near row among which different rows are assigned: 10 to 60 rows per
    person."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """Where numbers or dates may have been perturbed."""
        if scenario.synthetic or scenario.release_row is None:
            return ()
        perturbed = set(scenario.known) - set(scenario.unperturbed if scenario.steps else ())
        kinds = (scenario.release.table.column(name).dtype for name in perturbed)
        return (cls(),) if any(kind.is_numeric() or kind.is_temporal() for kind in kinds) else ()

    @property
    def setting(self) -> str:
        if self.view == "strongest":
            return ""
        return f"by {self.view}, adapted" if self.adapt else f"by {self.view}"

    @property
    def alternatives(self) -> tuple[Attack, ...]:
        if self.view != "strongest":
            return ()
        few = min(self.edges, _FEW_EDGES)
        return tuple(self.model_copy(update={"view": name, "edges": few}) for name in VIEWS)

    @property
    def refinements(self) -> tuple[Attack, ...]:
        """The same view with ``adapt``."""
        return (self.model_copy(update={"adapt": True}),) if self.view in _BASE and not self.adapt else ()

    def thorough(self, selected: Attack) -> Attack:
        """The selected view with all pairs."""
        return selected.model_copy(update={"edges": self.edges})

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        columns = columns_of(view, progress)
        # Without targets to select a view on, the values are used.
        name = "values" if self.view == "strongest" else self.view
        features = VIEWS[name](columns)
        if features is None:
            raise NotApplicable(f"The known columns have no view by {name}.", fix="Use another view.", view=name)
        parts = 1 + _ROUNDS if self.adapt else 1
        block = columns.block
        found = _link(
            features, block, rng.child("link", 0), split_deadline(progress, parts), 0 if self.adapt else self.edges
        )
        if self.adapt:
            base = VIEWS[_BASE.get(name, "values")](columns)
            if base is None or len(found.row) < _MIN_PAIRS * base[0].shape[1]:
                raise NotApplicable("There are too few targets to adapt a distance.", fix="Set `adapt: false`.")
            for number in range(1, 1 + _ROUNDS):
                moved = adapted((base[0][: len(found.row)], base[1]), found.row)
                own = split_deadline(progress, parts - number)
                found = _link(moved, block, rng.child("link", number), own, self.edges if number == _ROUNDS else 0)
        detail = {"columns": list(columns.names), "left out": list(columns.left_out)}
        return Guesses.of_rows(
            found.row, found.share, {name: value for name, value in detail.items() if value}, tried=len(found.row)
        )


_BASE = {
    "values": "values",
    "ranks": "ranks",
    "logarithms": "logarithms",
    "rescaled": "rescaled",
    "whitened values": "values",
    "noise covariance": "values",
    "noise covariance of logarithms": "logarithms",
    "differences": "values",
    "ratios": "logarithms",
}
"""Views from which a distance is adapted, and the features over which it is."""


@dataclass(frozen=True, kw_only=True)
class _Linked:
    """The row of each target that was reached in time, -1 if none agrees in the unchanged columns, and the share of
    its likelihood among near rows."""

    row: Ints
    share: Floats


def _link(features: Features, block: tuple[Ints, Ints], rng: Rng, progress: Progress, edges: int) -> _Linked:
    """Link by distance; with different rows for different people among so many pairs, if there are many people."""
    targets, released = features
    block = block[0][: len(targets)], block[1]
    count = int(np.clip(edges // max(1, len(targets)), 10, 60))
    competing = edges > 0 and 1 < len(targets) <= _MOST_COMPETING and len(targets) >= _COMPETING * len(released)
    near, distance = near_rows(targets, released, count if competing else 2, rng.generator, progress, block)
    if competing and len(near):
        check_deadline(progress)
        row = different_rows(near, distance, rng.child("ties").generator)
    else:
        row = near[:, 0]
    first = np.where(np.isfinite(distance[:, :1]), distance[:, :1], 0.0)
    scale = np.median(first) or 1.0
    weight = np.exp(-np.minimum((distance - first) / (2 * scale), 50.0))
    # No match is certain: it rests on distances.
    return _Linked(row=row, share=np.minimum(1 / np.maximum(weight.sum(axis=1), 1.0), 0.999))
