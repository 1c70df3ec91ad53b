"""Probabilistic record linkage (Fellegi and Sunter)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from sfumato.attacks.base import Discloses, Guesses, Linking, View
from sfumato.attacks.blocking import Rule, blocks
from sfumato.attacks.record_linkage.probabilistic_linkage.comparisons import Labels, Numbers, Strings, comparable, cuts
from sfumato.attacks.record_linkage.probabilistic_linkage.fellegi_sunter import fit, link, patterns
from sfumato.attacks.record_linkage.probabilistic_linkage.splink_backend import link_by_splink
from sfumato.errors import NotApplicable
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["ProbabilisticLinkage"]

_PATTERNS = 2_000_000
"""At most so many combinations of levels are told apart; columns get fewer levels until it fits."""


class ProbabilisticLinkage(Linking):
    """Somebody who knows values of a person names the released row that most probably is hers, by weighing agreements.

    How much it says that a column agrees, nearly agrees or disagrees is learned from both files without knowing any
    true pair (expectation maximization), so no scale has to be chosen and rare agreement counts more than common
    agreement. Numbers are compared at several distances, categories by whether the released value may stand for the
    known one, names and addresses by how alike they are written. A value that is missing or suppressed says nothing.
    With ``block`` only rows are compared that agree in those columns; who differs there cannot be found.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    pairwise: ClassVar[bool] = True
    examples: ClassVar = (
        {},
        {"block": ["sex"], "knows": ["sex", "height", "income", "rent", "commute"]},
        {"strings": "similar", "block": {"birth": 3}},
        {"engine": "splink"},
    )
    reference: ClassVar[str] = (
        "Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. Journal of the American Statistical "
        "Association 64. doi:10.1080/01621459.1969.10501049"
    )

    levels: Annotated[int, Field(ge=2, le=20)] = 6
    """Into how many levels of distance the comparison of numbers is cut; 2 is agreement and disagreement."""
    nearest: Annotated[float, Field(gt=0, le=0.5)] = 0.002
    """Which share of random pairs is near enough to count as the best level of agreement of numbers."""
    strings: Strings | None = None
    """Whether text agrees only when it is the same, or in steps of similarity (Jaro–Winkler, from 0.92 and from 0.8).
    When left out, text columns of more than 100 different values with words in them are compared by similarity."""
    block: tuple[str, ...] | dict[str, Rule] = ()
    """Known columns in which person and row must agree: a list of names, or for each name ``exact``, a number (so many
    first characters) or ``sound`` (Soundex)."""

    engine: Literal["own", "splink", "splink-spark"] = "own"
    """What weighs the comparisons: our own engine, Splink on DuckDB, or Splink on Spark (the active session, or a local
    one). Splink needs ``pip install 'sfumato[linkage]'``, and for Spark ``'sfumato[linkage,spark]'``."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        rules: Mapping[str, Rule] = self.block if isinstance(self.block, dict) else dict.fromkeys(self.block, "exact")
        if not set(rules) <= set(view.knows):
            raise NotApplicable("Blocking needs columns that the intruder knows.", columns=tuple(rules))
        # What must be equal tells nobody apart; what only begins or sounds alike still does.
        names = [name for name in view.knows if rules.get(name) != "exact"]
        if not names:
            raise NotApplicable("No known column is left to compare besides those blocked on.", columns=view.knows)
        block = blocks(view, rules)
        if block.pairs == 0:
            raise NotApplicable("Nobody agrees with any row in the columns blocked on.", columns=tuple(rules))
        near, fitted = comparable(view, names, self.strings, block, progress)
        limits = cuts(near, _fewer(self.levels, near, fitted), self.nearest, rng.child("levels").generator)
        if self.engine == "own":
            pattern = patterns(near, fitted, limits, block)
            with progress.task("learning the weights of agreement", 1) as tick:
                model = fit(pattern, draw=rng.child("fit").generator)
                tick(1)
            row, confidence = link(pattern, model, rng.child("ties").generator, progress)
            gain = model.bits
        else:
            draw, spark = rng.child("splink").generator, self.engine == "splink-spark"
            row, confidence, gain = link_by_splink(
                near, fitted, limits, block, spark=spark, draw=draw, progress=progress
            )
        used = [column.name for column in near] + [column.name for column in fitted]
        detail: dict[str, Any] = {"columns": dict(zip(used, gain, strict=True)), "engine": self.engine}
        if similar := [column.name for column in fitted if column.text is not None]:
            detail["by similarity"] = similar
        return Guesses.of_rows(row, confidence, detail, tried=len(row))


def _fewer(levels: int, near: list[Numbers], fitted: list[Labels]) -> int:
    """As many levels for numbers as the number of patterns allows."""
    others = prod(column.levels + column.blank for column in fitted)
    while prod([levels + column.blank for column in near]) * others > _PATTERNS:
        levels -= 1
        if levels < 2:
            raise NotApplicable("Too many columns to compare at once.", fix="Name fewer with `knows`.")
    return levels
