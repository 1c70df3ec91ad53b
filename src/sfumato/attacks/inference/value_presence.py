"""Membership inference from exact values that occur in the release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Stage, View
from sfumato.attacks.normalize import canonical
from sfumato.deadline import check_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

Floats = npt.NDArray[np.float64]


class ValuePresence(Attack):
    """An attacker who knows values of a person infers membership if rare ones of them occur in the release at all.

    Swapping, shuffling and synthesizers that draw from the data release original values, only in other rows. An exact
    amount that nobody else has is then proof that the person is in the data. Every known column counts: a value that
    occurs is evidence for membership, the more the rarer it is, and a value that does not occur is evidence against it.
    How often the values of other people occur by coincidence is estimated from the targets, by how many of them share a
    value (Good–Turing). Half of the targets are members, so a random guess is correct for half of them.
    """

    discloses: ClassVar[Discloses] = Discloses.MEMBERSHIP
    stage: ClassVar[Stage] = Stage.POPULATION
    order_in_stage: ClassVar[int] = 2
    cheap: ClassVar[bool] = True
    examples = ({"knows": ["height", "income", "rent", "commute"]},)
    reference: ClassVar[str] = (
        "Giomi, M. et al. (2023). A unified framework for quantifying privacy risk in synthetic data. "
        "doi:10.56553/popets-2023-0055. Good, I. J. (1953). doi:10.1093/biomet/40.3-4.237"
    )

    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Share of the targets that the attacker believes to be members."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        return (cls(),) if scenario.has_non_members else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        if not view.knows:
            raise NotApplicable("The attacker knows no column of the release.", fix="Name columns with `knows`.")
        score = np.zeros(view.targets.height)
        evidence: dict[str, float] = {}
        for name in view.knows:
            check_deadline(progress)
            column = log_odds(view.targets.get_column(name), view.release.table.column(name), self.share)
            evidence[name] = float(np.abs(column).mean())
            score += column
        # Ties at the threshold are broken at random, so that an uninformative release gives one half.
        order = np.lexsort((rng.child("ties").generator.random(len(score)), -score))
        member = np.zeros(len(score), dtype=np.bool_)
        member[order[: round(self.share * len(score))]] = True
        return Guesses(
            member=member,
            made=np.ones(len(score), dtype=np.bool_),
            confidence=1 / (1 + np.exp(-np.minimum(np.abs(score), 30.0))),
            detail={"columns": evidence},
        )

    @classmethod
    def remedy(cls, detail: object) -> str | None:
        return (
            "Do not release exact values that few people have: round or top-code the column, add noise after swapping "
            "or shuffling, or synthesize without `keep_values`."
        )


def log_odds(known: pl.Series, released: pl.Series, share: float) -> Floats:
    """For each target the log-likelihood ratio of membership from one column; 0 where a value is missing.

    The value of somebody else occurs in the release with the probability ``chance``, which is estimated from how often
    other targets have it. The value of a member occurs by chance or because it was kept.
    """
    text = canonical(known)
    usable = text.is_not_null().to_numpy()
    present = text.is_in(canonical(released).drop_nulls().unique().implode()).fill_null(False).to_numpy()
    if not usable.any() or not present.any():
        return np.zeros(len(known))
    size = text.to_frame("v").select(pl.len().over("v")).to_series().to_numpy().astype(np.float64)
    people = int(usable.sum())
    once, twice = (int((size[usable] == number).sum()) // number for number in (1, 2))
    unseen = float(np.clip(2 * twice / once, 1 / people, 1.0)) if once else 1.0
    chance = 1 - np.exp(-len(released) * (size - 1 + unseen) / people)
    surplus = present[usable].mean() - chance[usable].mean()
    room = share * float((1 - chance[usable]).mean())
    # Without more values than coincidence explains, the column is no evidence.
    if surplus < 3 * np.sqrt(0.25 / people) or room <= 0:
        return np.zeros(len(known))
    kept = min(surplus / room, 1 - 1 / (1 + len(released)))
    odds = np.where(present, np.log((chance + (1 - chance) * kept) / chance), np.log(1 - kept))
    return np.where(usable, odds, 0.0)
