"""Formulas: a number that follows from up to four others by sums, products and ratios, in most rows.

The terms are the columns, their products and their ratios. Pairs and triples of columns, and pairs of terms, that
explain most of the target are found by correlations on a part of the rows. Each is then fitted so that exceptions do
not count: the coefficients that agree with most rows are those of the formula. A formula that holds in at least half of
the rows, beyond the most frequent value of the target, is no chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.arrays import Floats, Ints
from sfumato.rng import Rng

Bools = npt.NDArray[np.bool_]
Term = tuple[int, int, bool]
"""A column, a second one or -1, and whether the first is divided by the second, or else multiplied."""

HOLDS = 0.5
"""Share of the rows in which a formula must hold."""
_CLOSE = 0.001
"""A formula holds in a row if it is this close, in units of the spread of the target."""
_ROWS = 1_000
"""Rows on which terms are compared and coefficients are first fitted."""
_FACTORS = 30
"""Columns whose products and ratios are terms."""
_TRIED = 20
"""Candidates that are fitted."""
_STARTS = 60
"""Small sets of rows from which coefficients are computed, so that one is free of exceptions."""
_LEAST = 0.2
"""Share of the variance that a candidate must explain."""
_FEWEST = 50


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A formula that was found."""

    columns: tuple[str, ...]
    """The columns that occur in it."""
    products: bool
    """Whether a product or ratio occurs."""
    share: float
    """The share of rows in which it holds, among those whose target is not its most frequent value."""
    values: Floats
    """What it gives in each row, NaN where a column is missing."""


def find_formula(named: Mapping[str, Floats], target: Floats) -> Formula | None:
    """The first formula that gives the target in most rows; None if there is none."""
    seen = np.flatnonzero(np.isfinite(target))
    if len(seen) < _FEWEST:
        return None
    some = Rng(0).child("formula").generator.permutation(seen)[:_ROWS]
    names = [name for name, values in named.items() if _usable(values[some])]
    columns = [named[name] for name in names]
    values, counts = np.unique(target[seen], return_counts=True)
    usual = target == values[counts.argmax()]
    spread = float(np.subtract(*np.percentile(target[seen], (84, 16)))) / 2 or float(np.std(target[seen]))
    if len(names) < 2 or not np.isfinite(spread) or spread == 0:
        return None
    target = target / spread
    for members in _candidates(columns, target, some):
        used = [_term(columns, term) for term in members]
        fitted = _fitted(np.column_stack(used), target, some, usual)
        if fitted is None:
            continue
        both = np.isfinite(fitted) & np.isfinite(target) & ~usual
        share = float((np.abs(fitted - target)[both] <= _CLOSE).mean()) if both.sum() >= _FEWEST else 0.0
        if share >= HOLDS:
            numbers = sorted({column for term in members for column in term[:2] if column >= 0})
            products = any(term[1] >= 0 for term in members)
            columns_used = tuple(names[number] for number in numbers)
            return Formula(columns=columns_used, products=products, share=share, values=np.round(fitted, 9) * spread)
    return None


def find_any_formula(known: pl.DataFrame, target: Floats) -> Formula | None:
    """The formula that gives the target from columns of a table in most rows, of the values or of their logarithms."""
    named = {series.name: as_floats(series) for series in known if series.dtype.is_numeric()}
    best = find_formula(named, target)
    positive = {name: values for name, values in named.items() if bool((values[~np.isnan(values)] > 0).all())}
    if bool((target[~np.isnan(target)] > 0).all()):
        of_logs = find_formula({name: np.log(values) for name, values in positive.items()}, np.log(target))
        if of_logs is not None and (best is None or of_logs.share > best.share):
            best = replace(of_logs, values=np.exp(of_logs.values))
    return best


def as_floats(series: pl.Series) -> Floats:
    """Numbers with NaN where there is none."""
    return series.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _term(columns: Sequence[Floats], term: Term) -> Floats:
    first, second, divided = term
    if second < 0:
        return columns[first]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = columns[first] / columns[second] if divided else columns[first] * columns[second]
    return np.where(np.isfinite(value), value, np.nan)


def _candidates(columns: Sequence[Floats], target: Floats, some: Ints) -> Iterator[tuple[Term, ...]]:
    """Pairs and triples of columns, then pairs of terms with at most four columns, those that explain most first."""
    singles: list[Term] = [(number, -1, False) for number in range(len(columns))]
    part = [column[some] for column in columns]
    known = target[some]
    pairs = _ranked(part, known, singles)
    yield from pairs[:_TRIED]
    triples = {tuple(sorted({*pair, term})) for pair in pairs[:_TRIED] for term in singles if term not in pair}
    yield from _best_triples(part, known, sorted(triples))
    factors = range(len(columns))
    if len(columns) > _FACTORS:
        alone = np.abs(_correlations(np.column_stack([known, *part]))[0, 1:])
        factors = np.sort(np.argsort(-alone, kind="stable")[:_FACTORS]).tolist()
    terms: list[Term] = [(number, -1, False) for number in factors]
    terms += [(first, second, False) for first, second in combinations(factors, 2)]
    terms += [(first, second, True) for first in factors for second in factors if first != second]
    yield from _ranked(part, known, terms)[:_TRIED]


def _ranked(part: Sequence[Floats], known: Floats, terms: Sequence[Term]) -> list[tuple[Term, ...]]:
    """Pairs of terms by the share of the variance of the target that they explain, the largest first."""
    values = [(term, value) for term in terms if _usable(value := _term(part, term))]
    if len(values) < 2:
        return []
    inner = _correlations(np.column_stack([known, *(value for _, value in values)]))
    own, among = inner[0, 1:], inner[1:, 1:]
    left, right = np.triu_indices(len(values), 1)
    both = among[left, right]
    rest = np.maximum(1 - both**2, 1e-9)
    explained = (own[left] ** 2 + own[right] ** 2 - 2 * own[left] * own[right] * both) / rest
    explained[np.abs(both) > 1 - 1e-9] = 0
    best = np.argsort(-explained, kind="stable")[:_TRIED]
    return [(values[left[one]][0], values[right[one]][0]) for one in best if explained[one] > _LEAST]


def _best_triples(
    part: Sequence[Floats], known: Floats, triples: Sequence[tuple[Term, ...]]
) -> Iterator[tuple[Term, ...]]:
    if not triples:
        return
    inner = _correlations(np.column_stack([known, *part]))
    members = np.array([[term[0] + 1 for term in triple] for triple in triples])
    among = inner[members[:, :, None], members[:, None, :]] + 1e-9 * np.eye(3)
    own = inner[members, 0]
    explained = np.einsum("ij,ij->i", own, np.linalg.solve(among, own[:, :, None])[:, :, 0])
    for one in np.argsort(-explained, kind="stable")[:_TRIED]:
        if explained[one] > _LEAST:
            yield triples[one]


def _usable(values: Floats) -> bool:
    """Whether a term has values in most rows, and not only one."""
    finite = values[np.isfinite(values)]
    return len(finite) >= max(_FEWEST, 0.5 * len(values)) and float(np.ptp(finite)) > 0


def _correlations(table: Floats) -> Floats:
    """Correlations; a missing or far-off value counts as the median, so that few rows decide nothing."""
    low, middle, high = np.nanpercentile(table, (1, 50, 99), axis=0)
    filled = np.clip(np.where(np.isfinite(table), table, middle), low, high)
    largest = np.abs(filled).max(axis=0)
    filled = filled / np.where(largest > 0, largest, 1)
    scaled = filled - filled.mean(axis=0)
    spread = np.sqrt((scaled**2).sum(axis=0))
    scaled = scaled / np.where(spread > 0, spread, 1)
    return np.asarray(scaled.T @ scaled)


def _fitted(terms: Floats, target: Floats, some: Ints, usual: Bools) -> Floats | None:
    """The values of the linear combination of the terms that agrees with most rows; None if it does with few."""
    whole = some[np.isfinite(terms[some]).all(axis=1) & ~usual[some]]
    if len(whole) < _FEWEST:
        return None
    scale = np.maximum(np.abs(terms[whole]).max(axis=0), 1e-300)
    design = np.column_stack([np.ones(len(whole)), terms[whole] / scale])
    chosen = Rng(0).child("starts").generator.integers(len(whole), size=(_STARTS, design.shape[1] + 1))
    weights = np.einsum("sij,sj->si", np.linalg.pinv(design[chosen]), target[whole][chosen])
    weights = np.vstack([weights, np.linalg.lstsq(design, target[whole], rcond=None)[0]])
    agree = np.abs(design @ weights.T - target[whole][:, None]) <= _CLOSE
    best = agree[:, int(agree.sum(axis=0).argmax())]
    if best.mean() < HOLDS / 2:
        return None
    weight = np.linalg.lstsq(design[best], target[whole][best], rcond=None)[0]
    return np.asarray(weight[0] + (terms / scale) @ weight[1:])
