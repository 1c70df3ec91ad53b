"""Singling out: predicates that match exactly one person."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Predicate, Stage, View
from sfumato.attacks.evaluation.predicates import shuffled
from sfumato.data.row_codes import value_codes
from sfumato.errors import OutOfTime
from sfumato.masking.methods._smoothing import smoothed
from sfumato.progress import SILENT, Progress
from sfumato.release import Release
from sfumato.rng import Rng

if TYPE_CHECKING:
    from sfumato.attacks.scenario import AttackScenario

_ALL = 1000
"""All columns, for predicates that describe whole rows."""
_NEIGHBOURS = 5
"""The numbers of the baseline lie between the released ones up to this many places apart."""


class SinglingOut(Attack):
    """An attacker looks for predicates that match exactly one released row and expects them to match one person only.

    No external file is needed and nobody is named: "the only woman born in 1931 in this ZIP code" is singled out, which
    the GDPR asks about. A predicate takes the values of a random released row in a few random columns (for numbers: at
    most, or at least, that value) and is kept if no other released row matches. It succeeds if exactly one person of
    the original matches. The baseline builds predicates from a release whose columns were shuffled independently: what
    the distributions of the columns reveal without the joint values.

    With ``exact`` numbers are compared for equality. One column then shows original values that a synthesizer or a swap
    released, and all columns together show copied records (replicated uniques). The baseline has numbers between the
    released ones in place of the exact values.
    """

    discloses: ClassVar[Discloses] = Discloses.SINGLING_OUT
    stage: ClassVar[Stage] = Stage.POPULATION
    examples = ({"descriptions": 200},)
    reference: ClassVar[str] = (
        "Cohen, A., Nissim, K. (2020). Towards formalizing the GDPR's notion of singling out. PNAS 117(15). "
        "doi:10.1073/pnas.1914598117. Giomi, M. et al. (2023). doi:10.56553/popets-2023-0055"
    )

    columns: Annotated[int, Field(ge=1, le=1000)] = 3
    """Maximum number of columns in a predicate."""
    exact: bool = False
    """Whether a predicate on a number or date is an equality, instead of "at most" or "at least"."""
    descriptions: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of predicates to look for."""

    @classmethod
    def defaults(cls, scenario: AttackScenario) -> Iterable[Self]:
        """Where identity cannot be evaluated (synthetic rows, perturbed rows without a row correspondence), and where
        perturbed columns hold values that exactly one person has."""
        if not scenario.known:
            return ()
        if scenario.synthetic or (scenario.release_row is None and not scenario.truthful):
            return cls(), cls(columns=1, exact=True), cls(columns=_ALL, exact=True)
        perturbed = set(scenario.known) - set(scenario.unperturbed if scenario.steps else ())
        telling = any(_holds_unique_values(scenario, name) for name in perturbed)
        return (cls(columns=1, exact=True),) if telling else ()

    @property
    def setting(self) -> str:
        if not self.exact:
            return ""
        return "exact values" if self.columns == 1 else "copied rows" if self.columns == _ALL else "exact"

    def baseline_release(self, release: Release, names: tuple[str, ...], draw: np.random.Generator) -> Release:
        """The release without what the attack exploits: joint values, or exact numbers."""
        release = shuffled(release, names, draw)
        if not self.exact:
            return release
        frame, every = release.table.frame, np.arange(release.table.rows)
        columns = [smoothed(frame[name], every, _NEIGHBOURS, draw) for name in names]
        return Release(table=release.table.with_frame(frame.with_columns(columns)), manifest=release.manifest)

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        frame = view.release.table.frame
        draw = rng.generator
        width = min(self.columns, len(view.knows))
        columns = {name: _Column(frame[name], self.exact) for name in view.knows}
        predicates: dict[tuple[object, ...], Predicate] = {}
        stopped = True
        with suppress(OutOfTime), progress.task("singling out", self.descriptions) as tick:
            for _ in range(20 * self.descriptions):
                if len(predicates) >= self.descriptions:
                    break
                tick(0)
                row = int(draw.integers(frame.height))
                names = draw.choice(len(view.knows), width, replace=False)
                conditions = []
                matching = None
                for place in np.sort(names):
                    name = view.knows[place]
                    sign, value, rows = columns[name].condition(row)
                    if sign is None:
                        continue
                    conditions.append((name, sign, value))
                    matching = rows if matching is None else np.intersect1d(matching, rows, assume_unique=True)
                if matching is None or len(matching) != 1:
                    continue
                key = tuple(conditions)
                if key not in predicates:
                    predicates[key] = Predicate(conditions=key)
                    tick(1)
            stopped = False
        if stopped and not predicates:
            raise OutOfTime("Stopped: time was up before a predicate was found.", fix="Allow more time.")
        return Guesses(
            predicates=tuple(predicates.values()),
            made=np.ones(len(predicates), dtype=np.bool_),
            confidence=np.full(len(predicates), 0.5),
            detail={"width": width},
            tried=len(predicates) if stopped else None,
        )


def _holds_unique_values(scenario: AttackScenario, name: str) -> bool:
    """Whether one number in a hundred of a released column is that of exactly one row, and of one person."""
    known, released = scenario.original.table.column(name), scenario.release.table.column(name)
    if known.dtype != released.dtype or not (known.dtype.is_numeric() or known.dtype.is_temporal()):
        return False
    values = released.filter(released.is_unique() & released.is_not_null())
    own = known.filter(known.is_unique())
    return 100 * int(values.is_in(own.implode()).sum()) > len(released)


class _Column:
    """One released column: the rows that share a value, or lie on the same side of it."""

    def __init__(self, series: pl.Series, exact: bool) -> None:
        self.series = series
        self.order = series.is_not_null().arg_true().to_numpy()
        self.numeric = not exact and (series.dtype.is_numeric() or series.dtype.is_temporal())
        if self.numeric:
            physical = series.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
            self.level = physical
            self.order = self.order[np.argsort(physical[self.order], kind="stable")]
            self.sorted = physical[self.order]
        else:
            codes, _ = value_codes(series)
            by_code = np.argsort(codes, kind="stable")
            self.codes, self.starts = codes, np.searchsorted(codes[by_code], np.arange(codes.max(initial=-1) + 2))
            self.by_code = by_code

    def condition(self, row: int) -> tuple[str | None, Any, Any]:
        """The condition on this column that the row satisfies, and all rows that satisfy it."""
        value = self.series[row]
        if value is None:
            return None, None, None
        if not self.numeric:
            code = self.codes[row]
            return "=", value, self.by_code[self.starts[code] : self.starts[code + 1]]
        place = np.searchsorted(self.sorted, self.level[row], side="left")
        if place < len(self.sorted) / 2:
            last = np.searchsorted(self.sorted, self.level[row], side="right")
            return "<=", value, np.sort(self.order[:last])
        return ">=", value, np.sort(self.order[place:])
