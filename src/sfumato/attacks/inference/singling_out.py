"""Singling out: a description that fits one person only."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from sfumato.attacks.base import Attack, Discloses, Guesses, Predicate, View
from sfumato.errors import OutOfTime
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

__all__ = ["SinglingOut"]


class SinglingOut(Attack):
    """Somebody looks for descriptions that fit exactly one released row, betting that they fit one person only.

    No outside file is needed and nobody is named: "the only woman born in 1931 in this ZIP" is singled out, and the law
    asks whether a release makes that possible. A description takes the values of a random released row in a few random
    columns (for numbers: at most, or at least, that value) and is kept when no other released row fits. It hits when
    exactly one person of the original fits. The baseline makes descriptions from columns shuffled one by one: what the
    columns' distributions give without knowing which values go together.
    """

    discloses: ClassVar[Discloses] = Discloses.SINGLING_OUT
    examples: ClassVar = ({"descriptions": 200},)
    reference: ClassVar[str] = (
        "Cohen, A., Nissim, K. (2020). Towards formalizing the GDPR's notion of singling out. PNAS 117(15). "
        "doi:10.1073/pnas.1914598117. Giomi, M. et al. (2023). doi:10.56553/popets-2023-0055"
    )

    columns: Annotated[int, Field(ge=1, le=20)] = 3
    """How many columns a description uses, at most."""
    descriptions: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """How many descriptions are tried to be found."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        frame = view.release.table.frame
        draw = rng.generator
        width = min(self.columns, len(view.knows))
        columns = {name: _Column(frame[name]) for name in view.knows}
        found: dict[tuple[Any, ...], Predicate] = {}
        stopped = True
        with suppress(OutOfTime), progress.task("singling out", self.descriptions) as tick:
            for _ in range(20 * self.descriptions):
                if len(found) >= self.descriptions:
                    break
                tick(0)
                row = int(draw.integers(frame.height))
                names = draw.choice(len(view.knows), width, replace=False)
                conditions = []
                fits = None
                for place in np.sort(names):
                    name = view.knows[place]
                    sign, value, held = columns[name].condition(row)
                    if sign is None:
                        continue
                    conditions.append((name, sign, value))
                    fits = held if fits is None else np.intersect1d(fits, held, assume_unique=True)
                if fits is None or len(fits) != 1:
                    continue
                key = tuple(conditions)
                if key not in found:
                    found[key] = Predicate(conditions=key)
                    tick(1)
            stopped = False
        if stopped and not found:
            raise OutOfTime("Stopped: time was up before a description was found.", fix="Allow more time.")
        return Guesses(
            predicates=tuple(found.values()),
            made=np.ones(len(found), dtype=np.bool_),
            confidence=np.full(len(found), 0.5),
            detail={"width": width},
            tried=len(found) if stopped else None,
        )


class _Column:
    """One released column: which rows share a value, or lie on the same side of it."""

    def __init__(self, series: pl.Series) -> None:
        self.series = series
        self.order = series.is_not_null().arg_true().to_numpy()
        self.numeric = series.dtype.is_numeric() or series.dtype.is_temporal()
        if self.numeric:
            physical = series.to_physical().cast(pl.Float64).fill_null(np.nan).to_numpy()
            self.level = physical
            self.order = self.order[np.argsort(physical[self.order], kind="stable")]
            self.sorted = physical[self.order]
        else:
            groups = series.to_frame("v").with_row_index("row").group_by("v").agg("row")
            self.groups = {value: np.sort(np.array(rows)) for value, rows in groups.iter_rows()}

    def condition(self, row: int) -> tuple[str | None, Any, Any]:
        """The condition this row's value makes, and the rows that fit it."""
        value = self.series[row]
        if value is None:
            return None, None, None
        if not self.numeric:
            return "=", value, self.groups[value]
        place = np.searchsorted(self.sorted, self.level[row], side="left")
        if place < len(self.sorted) / 2:
            last = np.searchsorted(self.sorted, self.level[row], side="right")
            return "<=", value, np.sort(self.order[:last])
        return ">=", value, np.sort(self.order[place:])
