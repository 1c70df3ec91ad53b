"""Probabilistic record linkage (Fellegi and Sunter)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, Stage, View
from sfumato.attacks.record_linkage.probabilistic_linkage.blocking import Rule, blocks
from sfumato.attacks.record_linkage.probabilistic_linkage.comparisons import Labels, Numbers, Strings, comparable, cuts
from sfumato.attacks.record_linkage.probabilistic_linkage.fellegi_sunter import fit, link, patterns
from sfumato.attacks.record_linkage.probabilistic_linkage.string_similarity import free_text
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

_PATTERNS = 2_000_000
"""Maximum number of comparison patterns; numbers get fewer levels until it is met."""


class ProbabilisticLinkage(Linking):
    """An attacker who knows values of a person names the most probable row under a Fellegi–Sunter model.

    The weights of agreement, near agreement and disagreement in each column are estimated from both files without known
    matches (expectation maximization), so no scale has to be chosen and agreement on a rare value counts more than on a
    common one. Numbers are compared at several distances, categories by whether the released value may represent the
    known one, names and addresses by string similarity. Missing and suppressed values count as no evidence. With
    ``block`` only rows that agree in those columns are compared, so a person who differs there cannot be found.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    stage: ClassVar[Stage] = Stage.SIMILARITY
    order_in_stage: ClassVar[int] = 2
    pairwise: ClassVar[bool] = True
    examples = (
        {},
        {"block": ["sex"], "knows": ["sex", "height", "income", "rent", "commute"]},
        {"strings": "similar", "block": {"birth": 3}},
    )
    reference: ClassVar[str] = (
        "Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. Journal of the American Statistical "
        "Association 64. doi:10.1080/01621459.1969.10501049"
    )

    levels: Annotated[int, Field(ge=2, le=20)] = 6
    """Number of comparison levels for numbers; 2 is agreement and disagreement."""
    nearest: Annotated[float, Field(gt=0, le=0.5)] = 0.002
    """Share of random pairs whose distance counts as the best level of agreement of numbers."""
    strings: Strings | None = None
    """How text is compared: for equality, or at two levels of Jaro–Winkler similarity (0.92 and 0.8). If omitted, text
    columns with more than 100 distinct values that contain words are compared by similarity."""
    block: tuple[str, ...] | dict[str, Rule] = ()
    """Blocking: known columns in which person and row must agree. A list of names, or for each name ``exact``, a number
    (of leading characters) or ``sound`` (Soundex)."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """Where a known column is free text: an external file may spell names differently."""
        original, released = scenario.original.table, scenario.release.table
        names = [name for name in scenario.known if name in original.columns]
        return (cls(),) if any(free_text(original.column(name), released.column(name)) for name in names) else ()

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        rules: Mapping[str, Rule] = self.block if isinstance(self.block, dict) else dict.fromkeys(self.block, "exact")
        if not set(rules) <= set(view.knows):
            raise NotApplicable("`block` names columns that the attacker does not know.", columns=tuple(rules))
        # Columns blocked on exactly are equal in every pair; the others still distinguish rows.
        names = [name for name in view.knows if rules.get(name) != "exact"]
        if not names:
            raise NotApplicable("All known columns are blocked on, so none is left to compare.", columns=view.knows)
        block = blocks(view, rules)
        if block.pairs == 0:
            raise NotApplicable("No target agrees with any row in the blocking columns.", columns=tuple(rules))
        near, fitted = comparable(view, names, self.strings, block, progress)
        limits = cuts(near, _fewer(self.levels, near, fitted), self.nearest, rng.child("levels").generator)
        pattern = patterns(near, fitted, limits, block)
        with progress.task("learning the weights of agreement", 1) as tick:
            model = fit(pattern, draw=rng.child("fit").generator)
            tick(1)
        row, confidence = link(pattern, model, rng.child("ties").generator, progress)
        used = [column.name for column in near] + [column.name for column in fitted]
        detail: dict[str, object] = {"columns": dict(zip(used, model.bits, strict=True))}
        if similar := [column.name for column in fitted if column.text is not None]:
            detail["by similarity"] = similar
        return Guesses.of_rows(row, confidence, detail, tried=len(row))


def _fewer(levels: int, near: list[Numbers], fitted: list[Labels]) -> int:
    """The number of levels for numbers that the maximum number of patterns allows."""
    others = prod(column.levels + column.blank for column in fitted)
    while prod([levels + column.blank for column in near]) * others > _PATTERNS:
        levels -= 1
        if levels < 2:
            raise NotApplicable("Too many columns to compare at once.", fix="Name fewer with `knows`.")
    return levels
