"""Best linear estimates of several marginals of one table from noisy measurements of some of them.

A table over a product of keys splits into orthogonal components, one for each set B of keys: what the marginal of B
has beyond the marginals of its subsets. A noisy marginal of keys T tells the components of all B ⊆ T, with independent
errors of covariance v·(product of the sizes of T without B) times one and the same projection. The best linear
unbiased estimate of a component is therefore the mean of what the measured marginals say about it, weighted by the
inverse of these factors, and the estimated marginals are sums of components (Xiao, He, Zhang, Kifer 2023,
ResidualPlanner, arXiv:2305.08175). Estimated marginals agree: summed over a key, one gives the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

KeySet = tuple[int, ...]
"""Places of keys, ascending."""
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MarginalEstimator:
    """How marginals are estimated: the sizes of all keys, and the variance of the noise on each measured marginal.

    >>> halves = MarginalEstimator(sizes=(2, 2), variances={(0, 1): 1.0, (): 1.0})
    >>> noisy = {(0, 1): np.array([[1.0, 2.0], [3.0, 4.0]]), (): np.array(15.0)}
    >>> halves.estimate(noisy, ()).item(), halves.estimate(noisy, (0,)).tolist(), round(halves.variance(()), 6)
    (14.0, [5.0, 9.0], 0.8)
    """

    sizes: tuple[int, ...]
    variances: Mapping[KeySet, float]

    def covers(self, keys: KeySet) -> bool:
        """Whether the marginal can be estimated."""
        return any(set(keys) <= set(measured) for measured in self.variances)

    def _size(self, keys: Sequence[int]) -> int:
        return prod(self.sizes[key] for key in keys)

    def _shares(self, component: KeySet) -> dict[KeySet, float]:
        """The weight of each measured marginal in the estimate of a component."""
        known = {
            measured: 1 / (variance * self._size(_without(measured, component)))
            for measured, variance in self.variances.items()
            if set(component) <= set(measured)
        }
        return {measured: weight / sum(known.values()) for measured, weight in known.items()}

    def estimate(self, noisy: Mapping[KeySet, Numbers], keys: KeySet) -> Numbers:
        """The estimated marginal of some keys, one axis for each."""
        total = np.zeros([self.sizes[key] for key in keys])
        for component in _subsets(keys):
            part = sum(
                (share * self._component(noisy[measured], measured, component)
                 for measured, share in self._shares(component).items()),
                start=np.zeros([self.sizes[key] for key in component]),
            )  # fmt: skip
            shape = [self.sizes[key] if key in component else 1 for key in keys]
            total = total + part.reshape(shape) / self._size(_without(keys, component))
        return total

    def _component(self, noisy: Numbers, measured: KeySet, component: KeySet) -> Numbers:
        found = noisy.sum(axis=tuple(i for i, key in enumerate(measured) if key not in component))
        for axis in range(len(component)):
            found = found - found.mean(axis=axis, keepdims=True)
        return np.asarray(found)

    def terms(self, keys: KeySet) -> Iterator[tuple[KeySet, float, int]]:
        """The noise in one number of an estimated marginal: (measured marginal, weight, how many numbers of it).

        The weight of a measured number depends only on which of the common keys have the same value in both.
        """
        for measured in self.variances:
            common = tuple(key for key in keys if key in measured)
            others = self._size(_without(measured, common))
            shares = {b: self._shares(b)[measured] / self._size(_without(keys, b)) for b in _subsets(common)}
            for same in _subsets(common):
                weight = sum(
                    share * prod(float(key in same) - 1 / self.sizes[key] for key in b) for b, share in shares.items()
                )
                yield measured, weight, others * prod(self.sizes[key] - 1 for key in _without(common, same))

    def variance(self, keys: KeySet) -> float:
        """The variance of one number of an estimated marginal."""
        return sum(count * weight**2 * self.variances[measured] for measured, weight, count in self.terms(keys))


def _subsets(keys: KeySet) -> list[KeySet]:
    return [chosen for size in range(len(keys) + 1) for chosen in combinations(keys, size)]


def _without(keys: KeySet, other: KeySet) -> KeySet:
    return tuple(key for key in keys if key not in other)
