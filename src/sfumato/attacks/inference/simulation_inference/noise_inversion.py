"""A released secret as what the masking made of it, and the way back to the value it was.

Where a published step perturbed the column itself, it is run again on the release, which is like the original: how
often which value becomes which is the channel. How frequent values were before is estimated from the released ones by
expectation maximization, and Bayes' rule turns the channel around.

References: Agrawal, D., Aggarwal, C. C. (2001). On the design and quantification of privacy preserving data mining
algorithms. PODS. doi:10.1145/375551.375602. Silverman, B. W. et al. (1990). A smoothed EM approach to indirect
estimation problems. Journal of the Royal Statistical Society B 52. doi:10.1111/j.2517-6161.1990.tb01788.x
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.likelihood import Scale, moves_of
from sfumato.attacks.normalize import canonical
from sfumato.attacks.remasking import release_proxy, steps_on
from sfumato.data.row_codes import positions
from sfumato.deadline import check_deadline, split_deadline
from sfumato.errors import NotApplicable
from sfumato.progress import Progress
from sfumato.rng import Rng

__all__ = ["Channel"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CELLS = 1000
"""Amounts that were perturbed are told apart by so many ranks."""
_VALUES = 20_000
"""Amounts with more different values are told apart by so many ranks."""
_MOVES = 400_000
_ROUNDS = 50
"""Of expectation maximization."""
_SMOOTH = 0.02
"""Over this share of the ranks the estimated frequencies of amounts are smoothed in every round, unless amounts repeat:
an estimate that fits the release to the last row is all spikes."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """The released values of a secret as places, and what each says about the original value."""

    values: pl.Series
    """The values that can be guessed; those that are numbers rise."""
    prior: Floats
    """Share of each among the original's people, as the intruder estimates it."""
    codes: Ints
    """For each released row the place of its value, -1 where it is missing."""
    forward: Floats | None
    """For each original place the probability of each released one; None where the column was left as it is."""

    def origins(self, votes: Floats, before: Floats) -> Floats:
        """What votes for released places say of original ones; people and votes are rows, as is what was believed."""
        if self.forward is None:
            return votes
        expected = before @ self.forward
        ratio = np.divide(votes, expected, out=np.zeros_like(votes), where=expected > 0)
        return before * (ratio @ self.forward.T)

    @classmethod
    def of(cls, view: View, rng: Rng, progress: Progress, *, amount: bool) -> Channel:
        """The channel of the column sought; ``amount`` when a guess that comes near is right."""
        assert view.secret is not None
        released = view.release.table.column(view.secret)
        if released.null_count() == len(released):
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        if _perturbed(view):
            column = released if amount else canonical(released)
            scale = Scale.of(column, column, _CELLS)
            if scale is not None:
                return cls._inverted(view, released, scale, rng, progress)
        return cls._plain(released, amount)

    @classmethod
    def _plain(cls, released: pl.Series, amount: bool) -> Channel:
        index = released.drop_nulls().unique().sort()
        if amount and len(index) > _VALUES:
            scale = Scale.of(released, released, _VALUES)
            assert scale is not None
            codes = scale.place(released)
            index = _middles(released, codes, scale.size)
        else:
            codes = positions(released, index).fill_null(-1).to_numpy()
        codes = np.where(released.is_null().to_numpy(), -1, codes)
        prior = np.bincount(codes[codes >= 0], minlength=len(index)).astype(np.float64)
        return cls(values=index, prior=prior / prior.sum(), codes=codes, forward=None)

    @classmethod
    def _inverted(cls, view: View, released: pl.Series, scale: Scale, rng: Rng, progress: Progress) -> Channel:
        assert view.secret is not None
        columns = (*view.knows, view.secret)
        stand_in = release_proxy(view, columns)
        steps = steps_on(view, columns, perturbed=(view.secret,))
        rounds = int(np.clip(-(-_MOVES // stand_in.rows), 1, 400))
        [counts] = moves_of([scale], stand_in, steps, rng, split_deadline(progress, 4), rounds).counts
        check_deadline(progress)
        codes = np.where(released.is_null().to_numpy(), -1, scale.place(released))
        # The last cell is "missing", which nobody is asked to guess.
        size = scale.size - 1
        seen = np.bincount(codes[(codes >= 0) & (codes < size)], minlength=size).astype(np.float64)
        prior, forward = _turned(counts[:size, :size], seen / seen.sum(), smooth=_scattered(scale, released))
        if scale.edges is not None:
            values = _middles(released, codes, size)
        else:
            first = pl.DataFrame({"value": released, "label": canonical(released)}).drop_nulls().unique("label")
            values = first.sort("label")["value"]
        return cls(values=values, prior=prior, codes=np.where(codes < size, codes, -1), forward=forward)


def _perturbed(view: View) -> bool:
    """Whether a published step may have put a false value into the column sought."""
    return any(
        not step.get("truthful", False) and view.secret in step.get("columns", (view.secret,)) for step in view.steps
    )


def _scattered(scale: Scale, released: pl.Series) -> bool:
    """Whether hardly any amount is released twice: then noise was added, and heaps in the original are gone."""
    held = released.drop_nulls()
    return scale.edges is not None and held.n_unique() > 0.9 * len(held)


def _middles(released: pl.Series, codes: Ints, size: int) -> pl.Series:
    """A value for each cell of ranks: the middle of those in it; cells that are empty repeat their neighbour's."""
    held = pl.DataFrame({"code": codes, "value": released.cast(pl.Float64)}).drop_nulls()
    middle = held.filter(pl.col("code") >= 0).group_by("code").agg(pl.col("value").median())
    every = pl.DataFrame({"code": np.arange(size)}).join(middle, on="code", how="left", maintain_order="left")
    return every["value"].fill_null(strategy="forward").fill_null(strategy="backward").alias(released.name)


def _turned(counts: Floats, seen: Floats, *, smooth: bool) -> tuple[Floats, Floats]:
    """From counts of moves and shares of released values: shares before, and what each original value becomes."""
    total = counts.sum(axis=1, keepdims=True)
    # A value that the simulation never started from stays as it is.
    forward = np.divide(counts, total, out=np.eye(len(counts)), where=total > 0)
    prior = seen.copy()
    kernel = np.hanning(2 * max(1, round(_SMOOTH * len(seen) / 2)) + 3)[1:-1] if smooth else np.ones(1)
    # Near the ends less of the kernel is inside.
    inside = np.convolve(np.ones(len(seen)), kernel, "same")
    for _ in range(_ROUNDS):
        prior = np.convolve(prior, kernel, "same") / inside
        expected = prior @ forward
        prior = prior * (forward @ np.divide(seen, expected, out=np.zeros_like(seen), where=expected > 0))
        prior /= prior.sum()
    return prior, forward
