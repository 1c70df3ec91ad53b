"""Downcoding: finer predicates from the fact that generalized labels are as small as possible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Predicate, Stage, View
from sfumato.attacks.value_parser import bounds
from sfumato.errors import NotApplicable
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

__all__ = ["Downcoding"]


class Downcoding(Attack):
    """An attacker who knows that ranges were chosen as small as possible singles out the person at the end of a range.

    A search that generalizes each group of rows no more than necessary tells more than the labels say: if a group is
    released as ages 34 to 52, somebody in it is 34. "In this group, and 34 or younger" is then a predicate that nearly
    always matches exactly one person of the original, although every label is shared by k rows. The attack uses one
    range of each group, the one with the most possible values. Lowest common groups of hierarchies are not exploited,
    nor are levels that a search chose for the whole table.
    """

    discloses: ClassVar[Discloses] = Discloses.SINGLING_OUT
    stage: ClassVar[Stage] = Stage.METHOD
    turn: ClassVar[int] = 1
    bounded_by_k: ClassVar[bool] = False
    weak_masking: ClassVar = {"mondrian": {}}
    examples: ClassVar = ({"descriptions": 200},)
    reference: ClassVar[str] = (
        "Cohen, A. (2022). Attacks on deidentification's defenses. USENIX Security 2022. arXiv:2202.13470"
    )

    descriptions: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of groups for which a predicate is built."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.tight_labels

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        return (cls(),) if scenario.known and cls.exploited(scenario.steps) else ()

    @classmethod
    def remedy(cls, detail: object) -> str | None:
        return (
            "Release fixed bands instead of the smallest ranges: declare an interval hierarchy and use `generalize`, "
            "or `round` numbers before the step."
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        if not view.transparent or not self.exploited(view.steps):
            raise NotApplicable(
                "No published step chooses the smallest range or group for each group of rows.",
                fix="Use `singling-out`.",
            )
        names = view.knows
        groups = view.release.table.frame.select(names).group_by(names, maintain_order=True).len("\x00rows")
        groups = groups.sample(
            min(groups.height, self.descriptions), shuffle=True, seed=int(rng.generator.integers(2**62))
        )
        ranges = {name: _ranges(groups[name]) for name in names if view.targets.schema[name].is_numeric()}
        predicates = []
        with progress.task("downcoding", groups.height) as tick:
            for place, (*labels, rows) in enumerate(groups.iter_rows()):
                tick(1)
                conditions: list[tuple[str, str, Any]] = [
                    (name, "=", label) for name, label in zip(names, labels, strict=True) if label is not None
                ]
                width, name = max(((ends[1][place], name) for name, ends in ranges.items()), default=(0.0, ""))
                if rows > 1 and width == 0:
                    continue
                if rows > 1:
                    conditions.append((name, "<=", float(ranges[name][0][place])))
                predicates.append(Predicate(conditions=tuple(conditions)))
        if not predicates:
            raise NotApplicable("No group of rows has a range of numbers.", fix="Use `singling-out`.")
        return Guesses(
            predicates=tuple(predicates),
            made=np.ones(len(predicates), dtype=np.bool_),
            confidence=np.full(len(predicates), 0.9),
        )


def _ranges(labels: pl.Series) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """The lower end of each range, and its width in the smallest steps between ends; 0 for labels that are no range."""
    low, width = np.zeros(len(labels)), np.zeros(len(labels))
    if labels.dtype == pl.String:
        for place, label in enumerate(labels.to_list()):
            ends = bounds(label) if label is not None else None
            if ends is not None and np.isfinite(ends).all():
                low[place], width[place] = ends[0], ends[1] - ends[0]
    steps = np.diff(np.unique(np.concatenate([low[width > 0], (low + width)[width > 0]])))
    return low, width / (steps.min() if len(steps) else 1.0)
