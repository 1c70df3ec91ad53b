"""Record linkage by equal values, weighted by their rarity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.record_linkage._near_rows import different_rows
from sfumato.attacks.record_linkage._unchanged_columns import unchanged_columns
from sfumato.attacks.record_linkage.rare_values.scores import UNIT, Postings, best_rows
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CANDIDATES = 20
"""Number of rows per target among which different rows are assigned."""
_MOST_COMPETING = 10_000
_COMPETING = 0.2
"""Different rows are assigned to at most this many targets, if they are at least this share of the rows."""
_ASKED = 1000
"""Number of targets from which it is estimated how often each column kept its value."""
_UNCHANGED = 1 - 1e-6
"""How often a column keeps its value that no published step changed."""


class RareValues(Linking):
    """An attacker who knows exact values of a person names the row in which most of them, above all rare ones, recur.

    Swapping some cells, replacing them, or changing only some columns leaves the other values of a person together in
    their row. Each equal value counts by the logarithm of how much more often it is equal for the same person than for
    anybody else (Fellegi–Sunter weights with the frequency of each value). How often a column kept its value is
    estimated from the pairs found first, without the truth. That a value is missing counts as well, because most
    methods leave blanks where they are. If the attacker knows at least a fifth of the people, different people get
    different rows. Values that were all changed a little, as by noise, are not exploited: see `view-linkage`.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.KEPT_VALUES
    pairwise: ClassVar[bool] = True
    min_targets: ClassVar[int] = _MOST_COMPETING
    examples = ({},)
    reference: ClassVar[str] = (
        "Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. doi:10.1080/01621459.1969.10501049. "
        "Narayanan, A., Shmatikov, V. (2008). doi:10.1109/SP.2008.33"
    )

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """Where values may have been perturbed, and some kept."""
        if scenario.synthetic or scenario.release_row is None:
            return ()
        return (cls(),) if set(scenario.known) - set(scenario.unperturbed if scenario.steps else ()) else ()

    @classmethod
    def remedy(cls, detail: object) -> str | None:
        return (
            "Change every cell of the known columns, not some of them: rare values that stay in a row identify "
            "the person. Or round and group values until many people share each."
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        postings = Postings.of(view, rng.child("order").generator)
        fixed = np.isin(postings.columns, unchanged_columns(view))
        if not postings.recurs[~fixed].any():
            raise NotApplicable(
                "No known value recurs in a column that was changed.", fix="Use `view-linkage` for perturbed values."
            )
        check_deadline(progress)
        kept = np.where(fixed, _UNCHANGED, 0.5)
        first = best_rows(postings, postings.weights(kept), min(_ASKED, view.targets.height), 2, progress)
        kept = np.where(fixed, _UNCHANGED, postings.share_kept(first))
        weights = postings.weights(kept)
        count = view.targets.height
        competing = 1 < count <= _MOST_COMPETING and count >= _COMPETING * view.release.table.rows
        found = best_rows(postings, weights, count, _CANDIDATES if competing else 2, progress)
        if not len(found.row):
            return Guesses.of_rows(np.full(count, -1, dtype=np.int64), np.zeros(count), tried=0)
        margin = (found.score[:, 0] - found.score[:, -1 if found.score.shape[1] < 2 else 1]) / UNIT
        share = np.where(found.ties > 1, 1 / found.ties, np.minimum(1 / (1 + np.exp(-margin)), 0.999))
        detail = {"columns": postings.contributions(weights, kept)}
        if competing:
            check_deadline(progress)
            cost = (found.score[:, :1] - found.score) / UNIT
            unlinked = np.maximum(found.score[:, 0], 0) / UNIT
            row = different_rows(found.row, cost, rng.child("ties").generator, unlinked)
            return Guesses.of_rows(row, share, detail, tried=len(row))

        def chance(rows: Ints) -> Floats:
            """One over the number of best rows for each of them, 0 for all others."""
            own = postings.score(weights, rows)
            return np.where(own == found.score[: len(rows), 0], 1 / found.ties[: len(rows)], 0.0)

        return Guesses.of_rows(found.row[:, 0], share, detail, tried=len(found.row), chance=chance)
