"""Downcoding: finer predicates from the fact that generalized labels are as small as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Predicate, Stage, View
from sfumato.attacks.transparency._minimal_labels import branches_beneath, minimality_findings
from sfumato.attacks.value_parser import bounds, set_members
from sfumato.errors import NotApplicable
from sfumato.masking.base import Step
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario


class Downcoding(Attack):
    """An attacker who knows that ranges were chosen as small as possible singles out the person at the end of a range.

    A search that generalizes each group of rows no more than necessary tells more than the labels say: if a group is
    released as ages 34 to 52, somebody in it is 34. "In this group, and 34 or younger" is then a predicate that nearly
    always matches exactly one person of the original, although every label is shared by k rows. In the same way each
    value of a set such as {asthma, flu} is somebody's: in a group of k rows with nearly k values, most values are those
    of one person. The attack uses one column of each group, the one in which a single person is most likely.

    Where no label is a range or a set, labels of published hierarchies are exploited. Two people released with the
    lowest common group "Europe" are one from the West and one from the East: "in this group, and from the West" singles
    one of them out. If an optimal search chose one level for the whole table (`generalize` with k-anonymity alone and
    no suppression), one level lower some class would have had between 1 and k - 1 people. With few classes that is
    nearly a value of a person: a column released as `*` in one class of 1,000 rows has a group that fewer than k people
    share. With many classes it says nothing about any one of them. The baseline is then the expected success of the
    same predicates if labels had been fixed in advance.
    """

    discloses: ClassVar[Discloses] = Discloses.SINGLING_OUT
    stage: ClassVar[Stage] = Stage.METHOD
    order_in_stage: ClassVar[int] = 1
    bounded_by_k: ClassVar[bool] = False
    weak_masking: ClassVar = {"mondrian": {}}
    examples = ({"descriptions": 200},)
    reference: ClassVar[str] = (
        "Cohen, A. (2022). Attacks on deidentification's defenses. USENIX Security 2022. arXiv:2202.13470"
    )

    descriptions: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of groups for which a predicate is built."""

    @classmethod
    def exploits(cls, method: type[Step]) -> bool:
        return method.tight_labels or method.minimal_labels

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        if not scenario.known or not cls.exploited(scenario.steps):
            return ()
        if any(method.tight_labels for method in scenario.methods):
            return (cls(),)
        # Levels for the whole table seldom say anything about single people.
        empty = scenario.original.table.frame.clear()
        return (cls(),) if minimality_findings(scenario.release, scenario.known, empty, scenario.steps) else ()

    @classmethod
    def remedy(cls, detail: object) -> str | None:
        return (
            "Release fixed bands instead of the smallest ranges: declare an interval hierarchy and use `generalize`, "
            "or `round` numbers before the step. Fix levels of hierarchies in advance (`lowest`), or allow some "
            "suppression."
        )

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        if not view.transparent or not self.exploited(view.steps):
            raise NotApplicable(
                "No published step chooses the smallest range or group that the models allow.",
                fix="Use `singling-out`.",
            )
        names = view.knows
        groups = view.release.table.frame.select(names).group_by(names, maintain_order=True).len("\x00rows")
        groups = groups.sample(
            min(groups.height, self.descriptions), shuffle=True, seed=int(rng.generator.integers(2**62))
        )
        tight = [_ends(view, groups[name]) for name in names]
        predicates, confidence = [], []
        with progress.task("downcoding", groups.height) as tick:
            for place, (*labels, rows) in enumerate(groups.iter_rows()):
                tick(1)
                conditions: list[tuple[str, str, object]] = [
                    (name, "=", label) for name, label in zip(names, labels, strict=True) if label is not None
                ]
                chance, name, one = max(
                    ((ends[place].alone(rows), name, ends[place]) for name, ends in zip(names, tight, strict=True)),
                    key=lambda entry: entry[0],
                )
                if rows > 1 and chance == 0:
                    continue
                if rows > 1:
                    conditions.append((name, one.sign, one.value))
                predicates.append(Predicate(conditions=tuple(conditions)))
                confidence.append(chance if rows > 1 else 0.999)
        if not predicates:
            return self._beneath_labels(view)
        return Guesses(
            predicates=tuple(predicates),
            made=np.ones(len(predicates), dtype=np.bool_),
            confidence=np.array(confidence),
        )

    def _beneath_labels(self, view: View) -> Guesses:
        """Guesses from labels of hierarchies."""
        found = minimality_findings(view.release, view.knows, view.targets, view.steps)
        if not found:
            raise NotApplicable(
                "No group of rows has a range of numbers or a set of values, and that labels are as fine as possible "
                "says nothing about single people here.",
                fix="Use `singling-out`.",
            )
        found = sorted(found, key=lambda finding: -finding.chance)[: self.descriptions]
        return Guesses(
            predicates=tuple(finding.predicate for finding in found),
            made=np.ones(len(found), dtype=np.bool_),
            confidence=np.array([finding.chance for finding in found]),
            by_chance=np.array([finding.by_chance for finding in found]),
        )


@dataclass(frozen=True, kw_only=True)
class _Tight:
    """A value that somebody in a group has because the label is as small as possible, and the number of values that
    the others may have; ``others`` of them occur as well."""

    sign: str = "="
    value: Any = None
    possible: float = 0.0
    others: int = 1

    def alone(self, rows: int) -> float:
        """The chance that nobody else among so many rows has the value, if values are equally frequent."""
        free = max(0, rows - 1 - self.others)
        return 0.999 * float(1 - 1 / self.possible) ** free if self.possible > 1 else 0.0


def _ends(view: View, labels: pl.Series) -> list[_Tight]:
    """The ends of the labels of one column. A group of a published hierarchy was not fitted to the values in it."""
    kind = view.targets.schema[labels.name]
    fixed = branches_beneath(view.release, labels.name, kind)
    ends = _ranges(labels) if kind.is_numeric() else _sets(labels)
    return [_Tight() if label in fixed else end for label, end in zip(labels.to_list(), ends, strict=True)]


def _ranges(labels: pl.Series) -> list[_Tight]:
    """The lower end of each range, and its width in the smallest steps between ends."""
    spans = [bounds(label) if isinstance(label, str) else None for label in labels.to_list()]
    proper = [span if span is not None and np.isfinite(span).all() and span[1] > span[0] else None for span in spans]
    steps = np.diff(np.unique([end for span in proper if span is not None for end in span]))
    step = steps.min() if len(steps) else 1.0
    return [
        _Tight() if span is None else _Tight(sign="<=", value=float(span[0]), possible=1 + (span[1] - span[0]) / step)
        for span in proper
    ]


def _sets(labels: pl.Series) -> list[_Tight]:
    """The rarest value of each set: the one that the fewest other labels name."""
    members = [set_members(label) if isinstance(label, str) else None for label in labels.to_list()]
    named = Counter(value for some in members for value in some or ())
    return [
        _Tight()
        if some is None or len(some) < 2
        else _Tight(value=min(some, key=lambda value: (named[value], value)), possible=len(some), others=len(some) - 1)
        for some in members
    ]
