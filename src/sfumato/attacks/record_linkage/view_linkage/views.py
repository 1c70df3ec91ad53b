"""Views of the data in which masked values may stay close to the original ones.

A view maps the columns of both files to features, and people are linked to near rows in that space. Each view reverses
one kind of masking: ranks survive a change of scale, whitening undoes correlated noise, and differences within a person
survive a move that all their values share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from sfumato.attacks.record_linkage.view_linkage.columns import Columns

Floats = npt.NDArray[np.float64]
Features = tuple[Floats, Floats]
"""Features of the targets and of the release rows."""

_FAR = 1e9
"""Upper bound of standardized values, so that squares do not overflow."""
_PRESERVED = 1000.0
"""Weight of what a view takes to be preserved, against the values themselves."""
_RECURRING = 1e5
"""Weight of what recurs exactly, so that small distances between people are not lost among ties."""
_EXACT_GAP = 0.01
"""Differences recur exactly if they are nearer to a released one than this share of the gaps between those."""
_ASKED = 500
"""Number of targets from which it is decided whether differences recur."""
_MOST_ROWS = 200_000
"""Up to this many rows, pairs of columns are tested for differences that recur."""
_LEAST_NOISE = 1e-9
"""Smallest variance of the noise, as a share of the variance of a column, and of a direction as a share of others."""


def values(columns: Columns) -> Features | None:
    """Standardized values, each file by its own mean and standard deviation."""
    return _weighted(columns, _standardized(columns, columns.known, columns.released))


def ranks(columns: Columns) -> Features | None:
    """Ranks within the own file: any increasing change of scale is undone."""
    if not columns.known.size:
        return None
    return _weighted(columns, _ranked(columns))


def logarithms(columns: Columns) -> Features | None:
    """Logarithms of amounts: relative perturbations have the same size for small and large amounts."""
    if not columns.known.size:
        return None
    return _weighted(columns, _standardized(columns, *_logarithms(columns)))


def rescaled(columns: Columns) -> Features | None:
    """Known values on the scale of the release: of several functions the one that fits the released distribution."""
    left, right = columns.known.copy(), columns.released
    for place in range(left.shape[1]):
        left[:, place] = _fitted(left[:, place], right[:, place])
    return _weighted(columns, _standardized(columns, left, right)) if left.size else None


def whitened_values(columns: Columns) -> Features | None:
    """Values in uncorrelated units (Mahalanobis distance by the covariance of both files)."""
    return _whitened(columns, _standardized(columns, columns.known, columns.released))


def whitened_logarithms(columns: Columns) -> Features | None:
    """Logarithms in uncorrelated units."""
    return _whitened(columns, _standardized(columns, *_logarithms(columns)))


def whitened_ranks(columns: Columns) -> Features | None:
    """Normal scores of ranks in uncorrelated units."""
    from scipy.special import ndtri

    if columns.known.shape[1] < 2:
        return None
    left, right = (ndtri(np.clip(part, 1e-6, 1 - 1e-6)) for part in _quantiles(columns))
    return _whitened(columns, (np.nan_to_num(left), np.nan_to_num(right)))


def noise_covariance(columns: Columns) -> Features | None:
    """Values in units of the noise, whose covariance is that of the release minus that of the known people."""
    return _in_units_of_noise(columns, columns.known, columns.released)


def noise_covariance_of_logarithms(columns: Columns) -> Features | None:
    """Logarithms in units of the noise: multiplicative noise, and factors that some columns share."""
    return _in_units_of_noise(columns, *_logarithms(columns))


def differences(columns: Columns) -> Features | None:
    """Differences between the values of a person: a common shift cancels, and intervals between dates remain."""
    groups = [columns.dates, ~columns.dates]
    return _contrasts(columns, columns.known, columns.released, groups)


def ratios(columns: Columns) -> Features | None:
    """Ratios of the amounts of a person, on the logarithmic scale: a common factor cancels."""
    left, right = _logarithms(columns)
    return _contrasts(columns, left, right, [~columns.dates])


def residues(columns: Columns) -> Features | None:
    """Digits after the decimal point, time of day and weekday: whole-number moves preserve them."""
    left, right = [], []
    for place in range(columns.known.shape[1]):
        for period in (1.0, 7.0) if columns.dates[place] else (1.0, 0.01):
            before, after = columns.known[:, place] / period, columns.released[:, place] / period
            angles = [np.nan_to_num(2 * np.pi * (part - np.floor(part))) for part in (before, after)]
            if all(np.ptp(np.round(angle, 9)) > 0 for angle in angles):
                for wave in (np.cos, np.sin):
                    left.append(wave(angles[0]))
                    right.append(wave(angles[1]))
    plain = values(columns)
    if not left or plain is None:
        return None
    return (
        np.hstack([_PRESERVED * np.column_stack(left), plain[0]]),
        np.hstack([_PRESERVED * np.column_stack(right), plain[1]]),
    )


def norms(columns: Columns) -> Features | None:
    """Distance of a person from the mean in uncorrelated units: any linear map of the columns preserves it.

    Rotations and principal components are such maps. The view is used if these distances recur in the release.
    """
    if (~columns.fixed).sum() < 2:
        return None
    moved = ~columns.fixed
    bases = [part[:, moved] for part in (columns.people, columns.released)]
    if not all(len(part) > 2 * part.shape[1] and np.isfinite(part).all() for part in bases):
        return None
    spectra = [np.linalg.eigh(np.cov(part, rowvar=False)) for part in bases]
    # Directions in which neither file varies, such as sums of columns, hold rounding errors only.
    kept = min(int((level > _LEAST_NOISE * level.max()).sum()) for level, _ in spectra)
    if not kept:
        return None
    left, right = (
        np.linalg.norm((part[:, moved] - base.mean(axis=0)) @ (axes[:, -kept:] / np.sqrt(level[-kept:])), axis=1)
        for part, base, (level, axes) in zip((columns.known, columns.released), bases, spectra, strict=True)
    )
    return _alone(columns, left, right) if _recurs(left, right) else None


def sorted_values(columns: Columns) -> Features | None:
    """The values of a person in ascending order: values that were exchanged between the columns of a row remain.

    The view is used if the totals of people recur in the release.
    """
    moved = ~columns.fixed & ~columns.dates
    left, right = columns.known[:, moved], columns.released[:, moved]
    if moved.sum() < 2 or not _recurs(left.sum(axis=1), right.sum(axis=1)):
        return None
    return _alone(columns, np.sort(left, axis=1), np.sort(right, axis=1))


VIEWS: Mapping[str, Callable[[Columns], Features | None]] = MappingProxyType(
    {
        view.__name__.replace("_", " "): view
        for view in (
            values,
            ranks,
            logarithms,
            rescaled,
            whitened_values,
            whitened_logarithms,
            whitened_ranks,
            noise_covariance,
            noise_covariance_of_logarithms,
            differences,
            ratios,
            residues,
            norms,
            sorted_values,
        )
    }
)
"""All views by name. A view returns None if the columns have no such features."""


def _weighted(columns: Columns, features: Features) -> Features:
    left, right = (np.nan_to_num(np.clip(part, -_FAR, _FAR)) * columns.weights for part in features)
    return columns.with_others((left, right))


def _standardized(columns: Columns, left: Floats, right: Floats) -> Features:
    if not left.size:
        return left, right
    with np.errstate(all="ignore"):
        spread = np.nanstd(right, axis=0)
        own = np.nanstd(left, axis=0)
        by_itself = columns.own_scale & (own > 0) & np.isfinite(own)
        middle = np.where(by_itself, np.nanmean(left, axis=0), np.nanmean(right, axis=0))
        scale = np.where(by_itself, own, spread)
        usable = np.isfinite(scale) & (scale > 0) & np.isfinite(spread) & (spread > 0)
        before = np.where(usable, (left - middle) / np.where(usable, scale, 1.0), 0.0)
        after = np.where(usable, (right - np.nanmean(right, axis=0)) / np.where(usable, spread, 1.0), 0.0)
    return np.nan_to_num(np.clip(before, -_FAR, _FAR)), np.nan_to_num(np.clip(after, -_FAR, _FAR))


def _logarithms(columns: Columns) -> Features:
    """Logarithms of columns that are positive in both files; of both signs, sign(x) log(1 + abs(x)); dates as is."""
    left, right = columns.known.copy(), columns.released.copy()
    with np.errstate(all="ignore"):
        for place in np.flatnonzero(~columns.dates):
            low = min(np.nanmin(left[:, place]), np.nanmin(right[:, place]))
            for part in (left, right):
                column = part[:, place]
                part[:, place] = np.log(column) if low > 0 else np.sign(column) * np.log1p(np.abs(column))
    return left, right


def _quantiles(columns: Columns) -> Features:
    """The quantile of each value in its own file; in that of the release if there are few targets."""
    parts = []
    for part, own in ((columns.known, columns.own_scale), (columns.released, np.ones_like(columns.fixed))):
        quantile = np.full(part.shape, np.nan)
        for place in range(part.shape[1]):
            among = part[:, place] if own[place] else columns.released[:, place]
            among = np.sort(among[np.isfinite(among)])
            if len(among):
                both = np.searchsorted(among, part[:, place], "left") + np.searchsorted(among, part[:, place], "right")
                quantile[:, place] = both / 2 / len(among)
        parts.append(np.where(np.isnan(part), np.nan, quantile))
    return parts[0], parts[1]


def _ranked(columns: Columns) -> Features:
    left, right = (np.nan_to_num((part - 0.5) * 12**0.5) for part in _quantiles(columns))
    return left, right


_SCALES: tuple[Callable[[Floats], Floats], ...] = (np.asarray, np.log, np.log1p, np.sqrt, np.square, np.exp)


def _fitted(known: Floats, released: Floats) -> Floats:
    """The known values under the function, or its negative, whose distribution is most like that of the release."""
    grid = np.linspace(0.02, 0.98, 49)
    wanted = np.nanquantile(released, grid)
    best, least = known, np.inf
    for scale in _SCALES:
        with np.errstate(all="ignore"):
            tried = scale(known)
        if not np.isfinite(tried[np.isfinite(known)]).all():
            continue
        for sign in (1.0, -1.0):
            found = np.nanquantile(sign * tried, grid)
            if found.std() > 0 and wanted.std() > 0:
                gap = (found - found.mean()) / found.std() - (wanted - wanted.mean()) / wanted.std()
                # The plain values are preferred unless another function fits clearly better.
                cost = float(np.square(gap).mean()) * (1.0 if scale is np.asarray and sign > 0 else 1.5)
                if cost < least:
                    best, least = sign * tried, cost
    return best


def _whitened(columns: Columns, features: Features) -> Features | None:
    if columns.known.shape[1] < 2:
        return None
    moved = ~columns.fixed
    if moved.sum() < 2:
        return None
    turned = whitened(features[0][:, moved], features[1][:, moved])
    if turned is None:
        return None
    exact = [part[:, columns.fixed] * columns.weights[columns.fixed] for part in features]
    return columns.with_others((np.hstack([turned[0], exact[0]]), np.hstack([turned[1], exact[1]])))


def whitened(left: Floats, right: Floats) -> Features | None:
    """Both files rotated and scaled so that Euclidean distance is Mahalanobis distance by V(A) + V(B)."""
    enough = len(left) > 2 * left.shape[1]
    spread = np.atleast_2d(np.cov(right, rowvar=False) + (np.cov(left, rowvar=False) if enough else 0.0))
    if not np.isfinite(spread).all():
        return None
    level, axes = np.linalg.eigh(spread)
    kept = level > level.max() * 1e-10
    if level.max() <= 0:
        return None
    turn = axes[:, kept] / np.sqrt(level[kept])
    return left @ turn, right @ turn


def _in_units_of_noise(columns: Columns, left: Floats, right: Floats) -> Features | None:
    moved = ~columns.fixed
    if moved.sum() < 2:
        return None
    scale = np.nanstd(right[:, moved], axis=0)
    if not np.isfinite(scale).all() or (scale == 0).any():
        return None
    middle = np.nanmean(right[:, moved], axis=0)
    known, released = (np.nan_to_num((part[:, moved] - middle) / scale) for part in (left, right))
    spread = np.cov(released, rowvar=False) - np.cov(known, rowvar=False)
    if len(known) <= 2 * moved.sum() or not np.isfinite(spread).all():
        return None
    level, axes = np.linalg.eigh(spread)
    # Estimated variances of the noise that are negative are as large as the error of the estimate.
    turn = axes / np.sqrt(np.maximum(np.abs(level), _LEAST_NOISE))
    exact = [part[:, columns.fixed] for part in _standardized(columns, left, right)]
    weights = columns.weights[columns.fixed]
    return columns.with_others(
        (np.hstack([known @ turn, exact[0] * weights]), np.hstack([released @ turn, exact[1] * weights]))
    )


def _contrasts(columns: Columns, left: Floats, right: Floats, groups: list[npt.NDArray[np.bool_]]) -> Features | None:
    """Deviations of a person's values from their mean, in units that both files share, ahead of the values."""
    parts: list[Features] = []
    for group in groups:
        member = group & ~columns.fixed
        if member.sum() < 2:
            continue
        before, after = _preserved(left[:, member], right[:, member]) or (
            part[:, member] - part[:, member].mean(axis=1, keepdims=True) for part in (left, right)
        )
        scale = np.nanstd(after)
        if not np.isfinite(scale) or scale == 0:
            continue
        turned = whitened(np.nan_to_num(before / scale), np.nan_to_num(after / scale))
        if turned is not None:
            parts.append((_PRESERVED * turned[0], _PRESERVED * turned[1]))
    if not parts:
        return None
    plain = _weighted(columns, _standardized(columns, left, right))
    return np.hstack([part[0] for part in parts] + [plain[0]]), np.hstack([part[1] for part in parts] + [plain[1]])


def _preserved(left: Floats, right: Floats) -> Features | None:
    """Differences of pairs of columns that recur exactly in the release; None if there are none, or many rows."""
    if len(right) > _MOST_ROWS:
        return None
    pairs = []
    for first, second in combinations(range(left.shape[1]), 2):
        before, after = left[:, first] - left[:, second], right[:, first] - right[:, second]
        if _recurs(before, after):
            pairs.append((before, after))
    if not pairs:
        return None
    return np.column_stack([pair[0] for pair in pairs]), np.column_stack([pair[1] for pair in pairs])


def _recurs(before: Floats, after: Floats) -> bool:
    """Whether most numbers of the targets are much closer to a released one than released ones are to each other."""
    sought = np.sort(after[np.isfinite(after)])
    asked = before[np.isfinite(before)][:_ASKED]
    if len(sought) < 3 or len(asked) == 0:
        return False
    place = np.clip(np.searchsorted(sought, asked), 1, len(sought) - 1)
    gap = np.minimum(np.abs(sought[place] - asked), np.abs(asked - sought[place - 1]))
    usual = sought[np.minimum(place + 1, len(sought) - 1)] - sought[place - 1]
    return bool(np.median(gap) < _EXACT_GAP * np.median(usual))


def _alone(columns: Columns, left: Floats, right: Floats) -> Features:
    """Features that replace the changed columns, beside the unchanged ones."""
    left, right = (part.reshape(len(part), -1) for part in (left, right))
    scale = np.where(right.std(axis=0) > 0, right.std(axis=0), 1.0)
    exact = [part[:, columns.fixed] for part in _standardized(columns, columns.known, columns.released)]
    weights = columns.weights[columns.fixed]
    sides = [
        np.nan_to_num(np.hstack([_RECURRING * part / scale, own * weights]))
        for part, own in zip((left, right), exact, strict=True)
    ]
    return columns.with_others((sides[0], sides[1]))
