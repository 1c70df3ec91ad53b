"""Lower a correlation or the accuracy of a classifier by exchanging values of one column between rows.

The distribution of every column stays as it is; only who has which value changes.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from sfumato.errors import NotApplicable
from sfumato.masking.results import Accuracy, Correlation, accuracy, correlation

_HALVINGS = 8


def lower_correlation(frame: pl.DataFrame, result: Correlation) -> pl.DataFrame:
    """Exchange the values of the second column in as few pairs of rows as needed, the most influential pairs first.

    >>> frame = pl.DataFrame({"x": [1, 2, 3, 4, 5, 6], "y": [1, 2, 3, 4, 5, 6]})
    >>> lower_correlation(frame, Correlation(correlation=("x", "y"), at_most=0.5))["y"].to_list()
    [6, 2, 3, 4, 5, 1]
    """
    found = correlation(frame, result)
    if found is None or abs(found) <= result.at_most:
        return frame
    first, second = result.correlation
    both = frame.select(pl.col(first).is_not_null() & pl.col(second).is_not_null()).to_series().to_numpy()
    rows = np.flatnonzero(both)
    x, y = (frame.get_column(name).cast(pl.Float64).to_numpy()[rows] for name in (first, second))
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    sign = 1.0 if found > 0 else -1.0
    order = np.argsort(x + sign * y, kind="stable")
    half = len(order) // 2
    low, high = order[:half], order[::-1][:half]
    gain = sign * (x[high] - x[low]) * (y[high] - y[low])
    pairs = np.argsort(-gain, kind="stable")
    pairs = pairs[gain[pairs] > 0]
    total, limit, size = sign * float(x @ y), result.at_most * len(rows), 0.0
    chosen: list[int] = []
    for pair in pairs:
        # A pair that would turn the correlation around is left out; smaller ones follow.
        if total - size > limit and total - size - gain[pair] >= -limit:
            chosen.append(int(pair))
            size += float(gain[pair])
    left, right = rows[low[chosen]], rows[high[chosen]]
    place = np.arange(frame.height)
    place[left], place[right] = right, left
    changed = frame.with_columns(frame.get_column(second).gather(place))
    after = correlation(changed, result)
    if after is not None and abs(after) > result.at_most:
        raise NotApplicable(
            f"hide-results: no exchange of values lowers the correlation of `{first}` and `{second}` to "
            f"{result.at_most:g}.",
            fix="Raise `at_most`, or remove one of the columns.",
        )
    return changed


def lower_accuracy(frame: pl.DataFrame, result: Accuracy, random: np.random.Generator) -> pl.DataFrame:
    """Shuffle the predicted column among the smallest share of random rows that brings the accuracy down."""
    if accuracy(frame, result) <= result.at_most:
        return frame
    column = frame.get_column(result.predict)
    rows = random.permutation(np.flatnonzero(column.is_not_null().to_numpy()))
    target = random.random(len(rows))

    def shuffled(count: int) -> pl.DataFrame:
        place = np.arange(frame.height)
        place[rows[:count]] = rows[:count][np.argsort(target[:count], kind="stable")]
        return frame.with_columns(column.gather(place))

    low, high = 0, len(rows)
    if accuracy(shuffled(high), result) > result.at_most:
        raise NotApplicable(
            f"hide-results: even after a full shuffle, `{result.predict}` is predicted more often than "
            f"{result.at_most:g}: its most frequent value alone reaches that.",
            fix="Raise `at_most`, or remove the column.",
        )
    for _ in range(_HALVINGS):
        middle = (low + high) // 2
        low, high = (low, middle) if accuracy(shuffled(middle), result) <= result.at_most else (middle, high)
    return shuffled(high)
