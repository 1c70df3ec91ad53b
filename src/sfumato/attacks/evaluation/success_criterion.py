"""Success criterion of attribute inference."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.normalize import canonical
from sfumato.attacks.value_coverage import coverage
from sfumato.attacks.value_parser import ROOTS
from sfumato.errors import NotApplicable

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """Success criterion of attribute inference, the same for the attack, its baseline and its control.

    A number is correct within the tolerance, a coarse label if it covers the true value, everything else if it is
    equal. A label that covers all values is never correct, because it discloses nothing.

    >>> criterion = Criterion(tolerance=0.1)
    >>> criterion.correct(pl.Series(["[20, 30)", "*"]), pl.Series([25, 25])).tolist()
    [True, False]
    >>> criterion.correct(pl.Series([104.0, 120.0]), pl.Series([100, 100])).tolist()
    [True, False]
    """

    tolerance: float = 0.0
    hierarchy: object = None
    """The published hierarchy of the sensitive column, as plain data."""

    def correct(self, guess: pl.Series, truth: pl.Series) -> Bools:
        """Which guesses are correct."""
        if truth.dtype.is_numeric() and guess.dtype.is_numeric():
            if self.tolerance == 0:
                return (canonical(guess) == canonical(truth)).fill_null(False).to_numpy()
            true, guessed = (series.cast(pl.Float64).to_numpy() for series in (truth, guess))
            with np.errstate(invalid="ignore"):
                close: Bools = np.abs(guessed - true) <= self.tolerance * np.abs(true)
            return close
        read = coverage(truth, guess, self.hierarchy)
        informative: Bools = ~read.vague[read.released] & truth.is_not_null().to_numpy()
        return read.covers(read.known, read.released) & informative

    @staticmethod
    def informative(released: pl.Series) -> pl.Series:
        """The released values that do not cover everything; all of them if there are none."""
        specific = released.filter(~canonical(released).is_in(list(ROOTS)))
        return specific if len(specific) else released

    def refuse_incomparable(self, released: pl.Series, truth: pl.Series) -> None:
        """Refuse a column whose released values can never be correct: this is not a risk of zero."""
        present, true = released.drop_nulls(), truth.drop_nulls()
        if present.dtype.is_numeric() and true.dtype.is_numeric():
            if self.tolerance == 0 and canonical(present).is_in(canonical(true).unique().implode()).mean() < 0.5:  # type: ignore[operator]
                raise NotApplicable(
                    f"The released numbers of `{released.name}` differ from the original ones, so no guess can be "
                    "exactly correct.",
                    fix="Set how close a guess must be, with `tolerance`.",
                )
        elif len(present) and not coverage(true, present, self.hierarchy).named:
            raise NotApplicable(
                f"No released value of `{released.name}` matches an original value, so guesses cannot be checked."
            )
