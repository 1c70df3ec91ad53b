"""Public domain of features: bounds of numbers and categories, declared and never read from the data.

>>> domain = FeatureDomain.declare(3, bounds={0: (0, 100), 1: (-1, 1)}, categories={2: ["f", "m"]})
>>> rows = np.array([[50, 2, "f"], [120, 0, "x"]], dtype=object)
>>> domain.scaled(rows).tolist()
[[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]]

Numbers are clipped to their bounds and scaled to -1 .. 1. A category becomes one column per declared value; a value
that is not declared becomes zeros.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from sfumato.arrays import Array, Floats
from sfumato.dataset import RangeDomain, ValuesDomain
from sfumato.errors import BadParameter, UnknownColumn, WrongKind
from sfumato.learning.noisy_sums import FEATURE_STEPS
from sfumato.wording import did_you_mean

_FIX = "Declare `bounds=(low, high)` for all numbers, or by column: `bounds={'age': (0, 120)}`."


def category_codes(domain: ValuesDomain, values: npt.NDArray[np.object_]) -> npt.NDArray[np.int64]:
    """Positions of the values of a category; one past the last for a value that is not declared."""
    known = {value: code for code, value in enumerate(domain.values)}
    return np.fromiter((known.get(value, domain.size) for value in values.tolist()), dtype=np.int64, count=len(values))


def _scaled(domain: RangeDomain | ValuesDomain, values: Array) -> Floats:
    if isinstance(domain, RangeDomain):
        return (2 * domain.position(values) - 1)[:, None]
    return np.eye(domain.size + 1, domain.size)[category_codes(domain, values)]


def width(domain: RangeDomain | ValuesDomain) -> int:
    """Number of columns of a feature in :meth:`FeatureDomain.scaled`."""
    return 1 if isinstance(domain, RangeDomain) else domain.size


@dataclass(frozen=True, kw_only=True)
class FeatureDomain:
    """The public domains of all features, in order."""

    columns: tuple[RangeDomain | ValuesDomain, ...]

    @classmethod
    def declare(
        cls, count: int, *, bounds: Any = None, categories: Mapping[Any, Sequence[Any]] | None = None,
        names: Sequence[Any] | None = None,
    ) -> FeatureDomain:  # fmt: skip
        """The domain that parameters of an estimator declare. A feature without one is refused."""
        listed = list(names) if names is not None else []
        kinds = {_position(key, count, listed): _categories(values) for key, values in (categories or {}).items()}
        shared: RangeDomain | None = None
        ranges: dict[int, RangeDomain] = {}
        if isinstance(bounds, Mapping):
            ranges = {_position(key, count, listed): _range(pair) for key, pair in bounds.items()}
        elif bounds is not None:
            array = np.asarray(bounds, dtype=object)
            if array.shape == (2,):
                shared = _range(bounds)
            elif array.ndim == 2 and array.shape == (count, 2):
                ranges = {index: _range(pair) for index, pair in enumerate(bounds)}
            else:
                raise BadParameter("`bounds` must be one pair, one pair per feature, or a mapping.", fix=_FIX)
        columns = [kinds.get(index) or ranges.get(index) or shared for index in range(count)]
        missing = [str(listed[i] if listed else i) for i, column in enumerate(columns) if column is None]
        if missing:
            shown = ", ".join(f"`{name}`" for name in missing[:8]) + (" and others" if len(missing) > 8 else "")
            raise BadParameter(
                f"No public domain is declared for {shown}: `bounds` or `categories` are required.",
                fix=f"{_FIX} For categories: `categories={{'sex': ['f', 'm']}}`. They must not come from the data.",
            )
        return cls(columns=tuple(column for column in columns if column is not None))

    @property
    def width(self) -> int:
        """Number of columns of :meth:`scaled`."""
        return sum(map(width, self.columns))

    @property
    def squared_norm(self) -> int:
        """The largest squared L2 norm of a row of :meth:`scaled`: every feature has at most 1."""
        return len(self.columns)

    @property
    def numbers(self) -> npt.NDArray[np.bool_]:
        """Which columns of :meth:`scaled` are numbers."""
        return np.concatenate([np.full(width(column), isinstance(column, RangeDomain)) for column in self.columns])

    def read(self, rows: Array) -> Iterator[tuple[RangeDomain | ValuesDomain, Array]]:
        """Every feature with its values; numbers as floats."""
        for index, column in enumerate(self.columns):
            values = rows[:, index]
            yield column, _numbers(values, index) if isinstance(column, RangeDomain) else values

    def scaled(self, rows: Array) -> Floats:
        """Numbers scaled to -1 .. 1 and indicators of categories, side by side."""
        return np.hstack([_scaled(column, values) for column, values in self.read(rows)])

    def in_steps(self, rows: Array, *, constant: bool) -> Floats:
        """:meth:`scaled` in whole grid steps, rounded towards zero, with a last column of ones for an intercept."""
        steps = np.trunc(self.scaled(rows) * FEATURE_STEPS)
        return np.hstack([steps, np.full((len(rows), 1), float(FEATURE_STEPS))]) if constant else steps


def _position(key: Any, count: int, names: list[Any]) -> int:
    if key in names:
        return names.index(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < count and not names:
        return int(key)
    fix = did_you_mean(str(key), names) if names else "Without column names, features are numbered from 0."
    raise UnknownColumn(f"A domain is declared for `{key}`, which is not a feature.", fix=fix, column=str(key))


def _range(pair: Sequence[float | str]) -> RangeDomain:
    try:
        low, high = (float(end) for end in pair)
    except (TypeError, ValueError):
        raise BadParameter("`bounds` must be pairs of numbers.", fix=_FIX) from None
    if not -inf < low < high < inf:
        raise BadParameter(
            "`bounds` must be two finite numbers, the lower one first.",
            fix="A column with one possible value carries no information: leave it out.",
        )
    return RangeDomain(low=low, high=high)


def _categories(values: Iterable[object]) -> ValuesDomain:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise BadParameter("`categories` must list the values of a column: `categories={'sex': ['f', 'm']}`.")
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len(listed) < 2 or len(set(listed)) != len(listed):
        raise BadParameter("`categories` needs at least two different values for every column.")
    try:
        return ValuesDomain(values=tuple(listed))
    except ValidationError:
        raise BadParameter("`categories` are texts, numbers, true and false, or dates.") from None


def _numbers(values: Array, index: int) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise WrongKind(
            f"Feature {index} is declared by `bounds` and contains text.", fix="Declare it in `categories`."
        ) from None
    if np.isnan(numbers).any():
        raise WrongKind(f"Feature {index} contains missing values (NaN).", fix="Impute or drop them before the fit.")
    return numbers
