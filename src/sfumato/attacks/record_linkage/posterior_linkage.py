"""Record linkage by the posterior of all evidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import polars as pl

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.posterior.candidates import best_pairs
from sfumato.attacks.posterior.evidence import collect
from sfumato.attacks.posterior.matching import one_to_one
from sfumato.attacks.posterior.people import link_people
from sfumato.attacks.remasking import WEAK_MASKING
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class PosteriorLinkage(Linking):
    """An attacker multiplies the evidence of all known columns and rows of a person.

    The score of a released row for a person is the sum over all known columns of log P(released | known), less what it
    is for anybody. Ranges and unchanged values are either possible or not; noise, swapping, PRAM, fuzzy
    microaggregation and shifted dates have the likelihood that follows from their published parameters (their
    channel); other methods are rerun to estimate it. Where a released column groups the rows of a person or household,
    the scores of the rows are added and the whole group is linked. Where counterfeit rows were added, rows whose other
    columns are shared by others are less likely real. Without published steps, how often each column kept
    its values and how far it moved them is learned from the files: rare values that were kept, near ranks and near
    values all count. Where the order of rows was kept, the place in the
    file is evidence too. Different people get different rows: the assignment with the largest total score is computed.

    Confidence is the probability of the pair under all assignments, so it can be compared with the share of correct
    guesses (calibration).
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SIMILARITY
    uses_everything: ClassVar[bool] = True
    bounded_by_k: ClassVar[bool] = False
    weak_masking: ClassVar = WEAK_MASKING
    pairwise: ClassVar[bool] = True
    min_targets: ClassVar[int] = 10_000
    examples = ({}, {"knows": ["height", "income", "rent", "commute"]})
    reference: ClassVar[str] = (
        "Reiter, J. P. (2005). Estimating risks of identification disclosure in microdata. Journal of the American "
        "Statistical Association 100. doi:10.1198/016214505000000619; Sinkhorn, R. (1964). A relationship between "
        "arbitrary positive matrices and doubly stochastic matrices. doi:10.1214/aoms/1177703591"
    )

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.simulable

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """Where values may have been perturbed, rows are grouped or were added, or their order was kept."""
        if scenario.synthetic or scenario.release_row is None or not scenario.known:
            return ()
        perturbed = not scenario.steps or len(scenario.unperturbed) < len(scenario.known)
        ordered = scenario.release.manifest.get("order") == "kept"
        added = any(method.adds_rows for method in scenario.methods)
        return (cls(),) if perturbed or ordered or added or scenario.household is not None else ()

    @classmethod
    def remedy(cls, detail: Mapping[str, object]) -> str | None:
        column = detail.get("together")
        if column is None:
            return None
        return (
            f"Remove “{column}”, which links rows that belong together: a whole household is often unique even if each "
            "of its members is not. Or generalize until whole households look alike."
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        evidence = collect(view, progress)
        detail: dict[str, object] = {"columns": list(evidence.columns)}
        if evidence.estimated:
            detail |= {"estimated": list(evidence.estimated), "rounds": evidence.rounds}
        draw = rng.child("ties").generator
        if view.household is not None:
            number, column = view.household
            group = view.release.table.column(column).rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
            everybody = view.targets.height if view.everybody is None else view.everybody[0].height
            row, sure = link_people(evidence, number, group, everybody == evidence.rows, draw, progress)
            detail["together"] = column
        else:
            pairs, _ = best_pairs(evidence, progress)
            row, sure = one_to_one(pairs, draw)
        # No match is certain: another assignment may be as likely.
        return Guesses.of_rows(row, np.minimum(sure, 0.999), detail, tried=len(row))
