"""When a guess of a sensitive value is right: one criterion for the attack, its baseline and its control."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.candidate_rows import compare
from sfumato.attacks.normalize import canonical
from sfumato.attacks.value_parser import ROOTS
from sfumato.errors import NotApplicable

__all__ = ["Criterion"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """A number is right when it is within the tolerance, a coarse label when it covers the true value, and all else
    when it is equal. A label that covers everything tells nothing and is never right.

    >>> rule = Criterion(tolerance=0.1)
    >>> rule.right(pl.Series(["[20, 30)", "*"]), pl.Series([25, 25])).tolist()
    [True, False]
    >>> rule.right(pl.Series([104.0, 120.0]), pl.Series([100, 100])).tolist()
    [True, False]
    """

    tolerance: float = 0.0
    hierarchy: object = None
    """The sensitive column's published hierarchy, as plain data."""

    def right(self, guess: pl.Series, truth: pl.Series) -> Bools:
        """For each guess whether it is right."""
        if truth.dtype.is_numeric() and guess.dtype.is_numeric():
            if self.tolerance == 0:
                return (canonical(guess) == canonical(truth)).fill_null(False).to_numpy()
            wanted, given = (series.cast(pl.Float64).to_numpy() for series in (truth, guess))
            with np.errstate(invalid="ignore"):
                close: Bools = np.abs(given - wanted) <= self.tolerance * np.abs(wanted)
            return close
        found = compare(truth, guess, self.hierarchy)
        # Place of each pair of a true value and a label that covers it, among all pairs.
        width = len(found.labels)
        covers = np.repeat(np.arange(len(found.values)), np.diff(found.starts)) * width + found.fits
        telling = ~found.vague[found.released] & truth.is_not_null().to_numpy()
        right: Bools = np.isin(found.known * width + found.released, covers) & telling
        return right

    @staticmethod
    def telling(released: pl.Series) -> pl.Series:
        """The released values that say something; all of them when none does."""
        said = released.filter(~canonical(released).is_in(list(ROOTS)))
        return said if len(said) else released

    def refuse_unjudgeable(self, released: pl.Series, truth: pl.Series) -> None:
        """Refuse a column whose released values cannot be right by their making: that is no risk of zero."""
        shown, held = released.drop_nulls(), truth.drop_nulls()
        if shown.dtype.is_numeric() and held.dtype.is_numeric():
            if self.tolerance == 0 and canonical(shown).is_in(canonical(held).unique().implode()).mean() < 0.5:  # type: ignore[operator]
                raise NotApplicable(
                    f"The released numbers of `{released.name}` are not the original ones, so no guess of one can be "
                    "exactly right.",
                    fix="Say how near a guess must come, with `tolerance`.",
                )
        elif len(shown) and not compare(held, shown, self.hierarchy).named:
            raise NotApplicable(
                f"No released value of `{released.name}` can be read as one of the original's: no guess can be judged."
            )
