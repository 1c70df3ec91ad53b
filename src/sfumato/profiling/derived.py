"""Derived columns: columns from which another column can be computed, such as squares, sums, codes and dummies.

A release that masks ``age`` and leaves ``age squared`` as it is has not masked the age. Three searches find columns
from which a target follows, exactly or nearly:

* one column: equal, monotone, recoded, or any other function (:mod:`sfumato.profiling.determination`);
* several columns that are each a function of the target: dummies of a category, parts of a date;
* sums, differences, products and ratios of two or three numbers;
* formulas of up to four numbers that hold in most rows, exceptions aside (:mod:`sfumato.profiling.formulas`).

Candidates are found on a part of the rows and then confirmed on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from sfumato.arrays import Floats
from sfumato.profiling.determination import FEWEST, Coded, error_of, joint, windows
from sfumato.profiling.formulas import find_formula
from sfumato.rng import Rng

NUMBERS, CATEGORIES = 0.01, 0.05
"""Largest errors at which a target counts as determined: of the variance of ranks, of the mistakes of a blind guess."""
EXACT = 0.001
"""Below this error a target is said to follow exactly."""
MONOTONE, SUM, RATIO = "a monotone function", "a sum or difference", "a product or ratio"
FORMULA = "sums of products or ratios"
_SEVERAL = 1.1
"""A target is said to be determined if a known value leaves at most this many values of it on average."""
_BETTER = 0.5
"""What follows from the masked target itself is no finding: other columns must err at most half as much."""
_ROWS = 10_000
_SAMPLED = 5_000
_PAIRS = 20
_MOST_PARTS = 12


@dataclass(frozen=True, kw_only=True)
class Determination:
    """A target that follows from other columns."""

    columns: tuple[str, ...]
    """The columns it follows from."""
    target: str
    how: str
    """In words, for example "a monotone function"."""
    error: float
    """What remains unknown: a share of the variance of ranks, or of the mistakes of a blind guess. 0 is exact."""
    left: float = 1.0
    """Number of values of the target that a value of the columns leaves on average: more than one if they are coarser
    than the target, as an age is coarser than a date of birth."""
    of: int = 0
    """Number of values of the target."""
    holds: float = 1.0
    """The share of the rows for which this is true, beyond the most frequent value of the target."""

    @property
    def computable(self) -> bool:
        """Whether order or arithmetic gives the target, and no table of codes is needed."""
        return self.how in (MONOTONE, SUM, RATIO, FORMULA)

    def to_dict(self) -> dict[str, object]:
        """The finding as plain data."""
        return {"columns": list(self.columns), "target": self.target, "how": self.how, "error": self.error}

    def __str__(self) -> str:
        one = len(self.columns) == 1
        names = " + ".join(f"`{name}`" for name in self.columns)
        if self.left > _SEVERAL:
            verb = "narrows" if one else "narrow"
            return f"{names} {verb} `{self.target}` down to {self.left:,.2g} of its {self.of:,} values ({self.how})"
        verb = "determines" if one else "determine"
        close = "" if self.error < EXACT else " nearly"
        rows = "" if self.holds > 0.999 else f" in {self.holds:.0%} of the rows"
        return f"{names}{close} {verb} `{self.target}`{rows} ({self.how})"


def find_determinations(
    known: pl.DataFrame, targets: pl.DataFrame, *, masked: Mapping[str, pl.Series] | None = None
) -> tuple[Determination, ...]:
    """Find the columns of ``known`` from which columns of ``targets`` follow. Row i is the same record in both.

    ``masked`` are the known columns that were masked. What follows from them about their own original anyway is not
    reported, and another target only if it follows exactly: the rest is what their masking leaves. A column does not
    determine the target of its own name. Each target is reported with every single column that determines it, or else
    with the smallest combination found.

    >>> ages = pl.Series("age", [20 + (i * 37) % 60 for i in range(200)])
    >>> table = pl.DataFrame({"age_squared": ages**2, "day": [i % 7 for i in range(200)]})
    >>> print(*find_determinations(table, pl.DataFrame({"age": ages})))
    `age_squared` determines `age` (a monotone function)
    """
    if known.height < FEWEST:
        return ()
    sources = [coded for series in known if (coded := Coded.of(series)).size > 1]
    goals = [coded for series in targets if (coded := Coded.of(series)).size > 1]
    bars = {goal.name: _bar(goal, (masked or {}).get(goal.name)) for goal in goals}

    def bar_of(goal: Coded, columns: Sequence[str]) -> float:
        return min(bars[goal.name], EXACT) if set(columns) & set(masked or ()) else bars[goal.name]

    alone: dict[str, set[str]] = {goal.name: set() for goal in goals}
    found: list[Determination] = []
    for source in sources:
        part = windows(source, _ROWS)
        close = [
            goal for goal in goals if goal.name != source.name and error_of(source, goal, part) <= 2 * bars[goal.name]
        ]
        if not close:
            continue
        whole = windows(source, len(source.codes))
        for goal in close:
            error = error_of(source, goal, whole)
            if error <= bar_of(goal, (source.name,)) > 0:
                alone[goal.name].add(source.name)
                how, left = _function(source, goal), _values_left(source, goal)
                found.append(
                    Determination(
                        columns=(source.name,), target=goal.name, how=how, error=error, left=left, of=goal.size
                    )
                )
    for goal in goals:
        others = [source for source in sources if source.name != goal.name and source.name not in alone[goal.name]]
        best = next(
            (
                determination
                for determination in (*_together(others, goal), *_arithmetic(others, goal), *_formula(others, goal))
                if determination.error <= bar_of(goal, determination.columns) > 0
            ),
            None,
        )
        if best is not None and not alone[goal.name]:
            found.append(best)
    return tuple(found)


def _bar(goal: Coded, masked: pl.Series | None) -> float:
    """The largest error that counts: the general one, or half of what the masked target leaves."""
    general = CATEGORIES if goal.category else NUMBERS
    if masked is None:
        return general
    shown = Coded.of(masked.alias(goal.name))
    return min(general, _BETTER * error_of(shown, goal, windows(shown, len(shown.codes))))


def _values_left(source: Coded, goal: Coded) -> float:
    """The number of target values per known value, on average over the known values."""
    both = (source.codes >= 0) & (goal.codes >= 0)
    pairs = np.unique(source.codes[both].astype(np.int64) * goal.size + goal.codes[both])
    return len(pairs) / max(1, len(np.unique(source.codes[both])))


def _function(source: Coded, goal: Coded) -> str:
    if source.numbers is None or goal.numbers is None:
        return "codes or labels of the same values" if source.size == goal.size else "a function"
    both = (source.codes >= 0) & (goal.codes >= 0)
    agreement = np.corrcoef(source.ranks[both], goal.ranks[both])[0, 1]
    return MONOTONE if abs(agreement) > 0.99 else "a function"


# --- several columns that are each a function of the target ---------------------------------------------------------


def _together(others: Sequence[Coded], goal: Coded) -> Iterator[Determination]:
    """Dummies, parts of a date, prefixes: add the part that helps most until the target is determined."""
    order, dates = windows(goal, _ROWS), _date_parts(goal.dates)
    parts = [
        other
        for other in others
        if other.size < goal.size
        and (error_of(goal, other, order) <= CATEGORIES / 5 or _is_one_of(dates, other.numbers))
    ]
    chosen: list[Coded] = []
    error = 1.0
    while parts and len(chosen) < _MOST_PARTS:
        tried = [(error_of(both := joint([*chosen, part]), goal, windows(both, _ROWS)), part) for part in parts]
        least, part = min(tried, key=lambda pair: pair[0])
        if least > 0.95 * error:
            return
        error = least
        chosen.append(part)
        parts.remove(part)
        if len(chosen) > 1 and error <= (CATEGORIES if goal.category else NUMBERS):
            both = joint(chosen)
            exact = error_of(both, goal, windows(both, len(both.codes)))
            yield Determination(columns=tuple(c.name for c in chosen), target=goal.name, how="together", error=exact)
            return


def _date_parts(dates: pl.Series | None) -> list[Floats]:
    """Year, month, day and so on of a date column."""
    if dates is None:
        return []
    moment = dates.dt
    parts = [moment.year(), moment.month(), moment.day(), moment.weekday(), moment.ordinal_day(), moment.quarter()]
    return [part.cast(pl.Float64).to_numpy() for part in parts]


def _is_one_of(parts: Sequence[Floats], numbers: Floats | None) -> bool:
    """Whether a column equals one of these wherever both have values."""
    if numbers is None:
        return False
    for part in parts:
        both = ~np.isnan(part) & ~np.isnan(numbers)
        if both.sum() >= FEWEST and bool((part[both] == numbers[both]).all()):
            return True
    return False


# --- sums, differences, products and ratios -------------------------------------------------------------------------


def _arithmetic(others: Sequence[Coded], goal: Coded) -> Iterator[Determination]:
    """Linear combinations of two or three columns, of the values and of their logarithms; the best first."""
    if goal.category or goal.numbers is None:
        return
    numeric = [other for other in others if other.numbers is not None and other.size > 2]
    if len(numeric) < 2:
        return
    rows = np.arange(len(goal.codes))
    if len(rows) > _SAMPLED:
        rows = Rng(0).child("derived", goal.name).generator.choice(len(rows), _SAMPLED, replace=False)
    for scale, how in ((_same, SUM), (_log, RATIO)):
        target = scale(goal.numbers)
        columns = [(other, values) for other in numeric if (values := scale(other.numbers)) is not None]
        if target is None or len(columns) < 2:
            continue
        table = np.column_stack([target, *(values for _, values in columns)])
        for members in _linear_candidates(_correlations(table[rows])):
            fitted = _fitted(table, members)
            if fitted is None:
                continue
            source = Coded.of_numbers("fitted", fitted)
            error = error_of(source, goal, windows(source, len(source.codes)))
            if error <= NUMBERS:
                names = tuple(columns[member - 1][0].name for member in members)
                yield Determination(columns=names, target=goal.name, how=how, error=error)
                return


def _formula(others: Sequence[Coded], goal: Coded) -> Iterator[Determination]:
    """A formula that is exact in most rows, whatever the exceptions are."""
    if goal.category or goal.numbers is None:
        return
    numeric = {other.name: other.numbers for other in others if other.numbers is not None and other.size > 2}
    found = find_formula(numeric, goal.numbers)
    if found is not None:
        how = FORMULA if found.products else SUM
        yield Determination(columns=found.columns, target=goal.name, how=how, error=0.0, holds=found.share)


def _same(values: Floats | None) -> Floats | None:
    return values


def _log(values: Floats | None) -> Floats | None:
    """Logarithms; None unless all values are positive."""
    if values is None or not bool((values[~np.isnan(values)] > 0).all()):
        return None
    logs: Floats = np.log(values)
    return logs


def _correlations(table: Floats) -> Floats:
    """Correlations over the rows in which both columns have values."""
    there = (~np.isnan(table)).astype(np.float64)
    scaled = table - np.nanmean(table, axis=0)
    spread = np.nanstd(scaled, axis=0)
    filled = np.nan_to_num(scaled / np.where(spread > 0, spread, 1))
    count = np.maximum(there.T @ there, 1)
    mean = (filled.T @ there) / count
    square = ((filled**2).T @ there) / count - mean**2
    together = (filled.T @ filled) / count - mean * mean.T
    scale = np.sqrt(np.maximum(square * square.T, 1e-300))
    correlations: Floats = np.clip(together / scale, -1, 1)
    return correlations


def _linear_candidates(correlations: Floats) -> Iterator[tuple[int, ...]]:
    """The most promising pairs and triples of columns (from 1) for the linear prediction of column 0."""
    columns = range(1, len(correlations))
    pairs = _ranked(correlations, list(combinations(columns, 2)))
    yield from (pair for share, pair in pairs[:_PAIRS] if share > 0.9)
    triples = {tuple(sorted((*pair, c))) for _, pair in pairs[:_PAIRS] for c in columns if c not in pair}
    yield from (triple for share, triple in _ranked(correlations, sorted(triples))[:_PAIRS] if share > 0.9)


def _ranked(correlations: Floats, members: list[tuple[int, ...]]) -> list[tuple[float, tuple[int, ...]]]:
    """Share of the variance of column 0 that each combination explains, the largest first."""
    if not members:
        return []
    chosen = np.array(members)
    inner = correlations[chosen[:, :, None], chosen[:, None, :]] + 1e-9 * np.eye(chosen.shape[1])
    outer = correlations[chosen, 0]
    explained = np.einsum("ij,ij->i", outer, np.linalg.solve(inner, outer[:, :, None])[:, :, 0])
    order = np.argsort(-explained, kind="stable")
    return [(float(explained[i]), members[i]) for i in order]


def _fitted(table: Floats, members: tuple[int, ...]) -> Floats | None:
    """The least-squares prediction of column 0, NaN where a value is missing."""
    used = table[:, [0, *members]]
    whole = ~np.isnan(used).any(axis=1)
    if whole.sum() < FEWEST:
        return None
    design = np.column_stack([np.ones(int(whole.sum())), used[whole, 1:]])
    weights = np.linalg.lstsq(design, used[whole, 0], rcond=None)[0]
    fitted = np.full(len(table), np.nan)
    fitted[whole] = np.round(design @ weights / max(float(used[whole, 0].std()), 1e-300), 9)
    return fitted
