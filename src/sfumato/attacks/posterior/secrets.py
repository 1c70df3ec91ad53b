"""Noise inversion: the distribution of an original value given its perturbed released value.

If a published step perturbed the sensitive column, the step is rerun on the release, which is similar to the original.
The transition frequencies are the channel. The distribution of the original values is estimated from the released ones
by expectation maximization, and Bayes' rule inverts the channel.

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
from sfumato.attacks.likelihood import Scale, simulate_perturbations
from sfumato.attacks.normalize import canonical
from sfumato.attacks.remasking import release_proxy, steps_on
from sfumato.attacks.shared_simulations import masking_rounds
from sfumato.data.row_codes import positions
from sfumato.deadline import check_deadline, split_deadline
from sfumato.errors import NotApplicable
from sfumato.masking.base import method_of
from sfumato.progress import Progress

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_CELLS = 1000
"""Number of rank intervals for perturbed amounts."""
_VALUES = 20_000
"""Amounts with more distinct values are divided into this many rank intervals."""
_TRANSITIONS = 400_000
"""Number of simulated transitions."""
_ROUNDS = 50
"""Rounds of expectation maximization."""
_SMOOTH = 0.02
"""Share of the ranks over which the estimated frequencies of amounts are smoothed in every round, unless amounts
repeat. Without smoothing, the estimate would overfit the release."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """The released values of a sensitive column as codes, and their transition probabilities."""

    values: pl.Series
    """The values that can be guessed; numbers are ascending."""
    prior: Floats
    """Estimated frequency of each value in the original."""
    codes: Ints
    """The code of each released row's value, -1 if it is missing."""
    forward: Floats | None
    """Transition probabilities from original to released codes; None if the column was not perturbed."""

    def origins(self, votes: Floats, prior: Floats) -> Floats:
        """Votes for released codes turned into votes for original ones by Bayes' rule; one row per target."""
        if self.forward is None:
            return votes
        expected = prior @ self.forward
        ratio = np.divide(votes, expected, out=np.zeros_like(votes), where=expected > 0)
        return prior * (ratio @ self.forward.T)

    @classmethod
    def of(cls, view: View, progress: Progress, *, amount: bool) -> Channel:
        """The channel of the sensitive column; ``amount`` if an approximate guess counts as correct."""
        assert view.secret is not None
        released = view.release.table.column(view.secret)
        if released.null_count() == len(released):
            raise NotApplicable(f"The released column `{view.secret}` is empty.")
        if _perturbed(view):
            column = released if amount else canonical(released)
            scale = Scale.of(column, column, _CELLS)
            if scale is not None:
                return cls._inverted(view, released, scale, progress)
        return cls._plain(released, amount)

    @classmethod
    def _plain(cls, released: pl.Series, amount: bool) -> Channel:
        index = released.drop_nulls().unique().sort()
        if amount and len(index) > _VALUES:
            scale = Scale.of(released, released, _VALUES)
            assert scale is not None
            codes = scale.place(released)
            index = _medians(released, codes, scale.size)
        else:
            codes = positions(released, index).fill_null(-1).to_numpy()
        codes = np.where(released.is_null().to_numpy(), -1, codes)
        prior = np.bincount(codes[codes >= 0], minlength=len(index)).astype(np.float64)
        return cls(values=index, prior=prior / prior.sum(), codes=codes, forward=None)

    @classmethod
    def _inverted(cls, view: View, released: pl.Series, scale: Scale, progress: Progress) -> Channel:
        assert view.secret is not None
        columns = (*view.knows, view.secret)
        similar = release_proxy(view, columns)
        steps = steps_on(view, columns, perturbed=(view.secret,))
        rounds = int(np.clip(-(-_TRANSITIONS // similar.rows), 1, 400))
        [counts] = simulate_perturbations(
            [scale], masking_rounds(similar, steps), split_deadline(progress, 4), rounds
        ).counts
        check_deadline(progress)
        codes = np.where(released.is_null().to_numpy(), -1, scale.place(released))
        # The last cell is for missing values, which are not guessed.
        size = scale.size - 1
        seen = np.bincount(codes[(codes >= 0) & (codes < size)], minlength=size).astype(np.float64)
        prior, forward = _estimate_prior(
            counts[:size, :size], seen / seen.sum(), smooth=_mostly_distinct(scale, released)
        )
        if scale.edges is not None:
            values = _medians(released, codes, size)
        else:
            first = pl.DataFrame({"value": released, "label": canonical(released)}).drop_nulls().unique("label")
            values = first.sort("label")["value"]
        return cls(values=values, prior=prior, codes=np.where(codes < size, codes, -1), forward=forward)


def linear_prior(view: View) -> tuple[Floats, float, float] | None:
    """The expected value of a perturbed amount for each target, the standard deviation around it, and the share of the
    variance that it explains.

    The moments of the release, less the noise that the published steps added, are those of the original: from them
    follows the best linear estimate from the known values, which are true. None if a perturbation is not noise.
    """
    assert view.secret is not None
    released = view.release.table.frame
    names = [
        name
        for name in dict.fromkeys((*view.knows, view.secret))
        if released[name].dtype.is_numeric() and (name == view.secret or view.targets[name].dtype.is_numeric())
    ]
    if names[-1] != view.secret or len(names) < 2:
        return None
    table = released.select(pl.col(names).cast(pl.Float64)).drop_nulls().to_numpy()
    if len(table) <= 2 * len(names):
        return None
    spread = np.atleast_2d(np.cov(table, rowvar=False))
    for step in view.steps:
        changed = method_of(step).changed_columns(step, names)
        if not changed:
            continue
        added = method_of(step).added_covariance(step, released)
        if added is None:
            return None
        place = [names.index(name) for name in changed]
        own = [step["columns"].index(name) for name in changed]
        spread[np.ix_(place, place)] -= added[np.ix_(own, own)]
    scale = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    if not (np.diag(spread) > 0).all():
        return None
    related = spread / np.outer(scale, scale)
    inverse = np.linalg.pinv(related[:-1, :-1], rcond=0.01, hermitian=True)
    weight = inverse @ related[:-1, -1]
    left = max(1 - float(weight @ related[:-1, -1]), 0.01)
    known = view.targets.select(pl.col(names[:-1]).cast(pl.Float64)).fill_null(np.nan).to_numpy()
    unit = np.nan_to_num((known - table[:, :-1].mean(axis=0)) / scale[:-1], nan=0.0)
    return table[:, -1].mean() + scale[-1] * (unit @ weight), float(scale[-1] * np.sqrt(left)), 1 - left


def _perturbed(view: View) -> bool:
    """Whether a published step may have perturbed the sensitive column."""
    return any(
        not step.get("truthful", False) and view.secret in step.get("columns", (view.secret,)) for step in view.steps
    )


def _mostly_distinct(scale: Scale, released: pl.Series) -> bool:
    """Whether hardly any amount is released twice, as after additive noise."""
    present = released.drop_nulls()
    return scale.edges is not None and present.n_unique() > 0.9 * len(present)


def _medians(released: pl.Series, codes: Ints, size: int) -> pl.Series:
    """The median of the values in each rank interval; an empty interval repeats its neighbour's."""
    present = pl.DataFrame({"code": codes, "value": released.cast(pl.Float64)}).drop_nulls()
    median = present.filter(pl.col("code") >= 0).group_by("code").agg(pl.col("value").median())
    every = pl.DataFrame({"code": np.arange(size)}).join(median, on="code", how="left", maintain_order="left")
    return every["value"].fill_null(strategy="forward").fill_null(strategy="backward").alias(released.name)


def _estimate_prior(counts: Floats, seen: Floats, *, smooth: bool) -> tuple[Floats, Floats]:
    """Estimate the frequencies of the original values and the transition probabilities.

    ``counts`` are simulated transitions, ``seen`` the frequencies of the released values.
    """
    total = counts.sum(axis=1, keepdims=True)
    # A value that was never simulated is assumed to be unchanged.
    forward = np.divide(counts, total, out=np.eye(len(counts)), where=total > 0)
    prior = seen.copy()
    kernel = np.hanning(2 * max(1, round(_SMOOTH * len(seen) / 2)) + 3)[1:-1] if smooth else np.ones(1)
    # Near the ends, only part of the kernel is inside.
    inside = np.convolve(np.ones(len(seen)), kernel, "same")
    for _ in range(_ROUNDS):
        prior = np.convolve(prior, kernel, "same") / inside
        expected = prior @ forward
        prior = prior * (forward @ np.divide(seen, expected, out=np.zeros_like(seen), where=expected > 0))
        prior /= prior.sum()
    return prior, forward
