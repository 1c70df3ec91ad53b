"""Exposure of single columns: the share of unique rows under a column alone, and with the best one and two others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.profiling.partitions import Encoded, divide, encode
from sfumato.profiling.screening import Screen
from sfumato.profiling.singling_out import Combination
from sfumato.rng import Rng

_VISITS = 100_000_000
"""Rows times combinations that are counted; beyond that, combinations are compared on a sample of rows."""
_SCREENED = 500
_GAIN = 0.005
"""A larger combination is stated only if it singles out this much more."""


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """What one column singles out. Shares are exact; a better combination may exist if many were compared."""

    column: str
    alone: float
    """Share of rows whose value of this column no other row has."""
    best: tuple[Combination, ...]
    """The best pair and triple with this column; each is left out if it adds nothing."""

    @property
    def largest(self) -> float:
        """The largest stated share."""
        return max([self.alone, *(found.unique for found in self.best)])

    def to_dict(self) -> dict[str, object]:
        """The result as plain data."""
        return {"column": self.column, "alone": self.alone, "best": [found.to_dict() for found in self.best]}

    def __str__(self) -> str:
        """One line, for example ``1.2% of the rows are unique; 94.6% with wt82``."""
        text = f"{self.alone:.1%} of the rows are unique"
        for found in self.best:
            text += f"; {found.unique:.1%} with {' + '.join(n for n in found.columns if n != self.column)}"
        return text


def exposures(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[Exposure, ...]:
    """The exposure of each of these columns within the frame, the most exposing first.

    All pairs are compared. A triple is the best extension of the best pair.

    >>> people = pl.DataFrame({"ht": [1, 1, 2, 2], "wt": [7, 8, 7, 8], "x": [0, 0, 0, 0]})
    >>> print(exposures(people, ["ht"])[0])
    0.0% of the rows are unique; 100.0% with wt
    """
    data = encode(frame)
    own = [data.names.index(name) for name in columns]
    others = range(len(data.names))
    pairs = {c: [tuple(sorted((c, o))) for o in others if o != c] for c in own}
    compared = _shares(data, {pair for line in pairs.values() for pair in line})
    best = {c: max(line, key=compared.__getitem__) for c, line in pairs.items() if line}
    triples = {c: [tuple(sorted((*pair, o))) for o in others if o not in pair] for c, pair in best.items()}
    compared |= _shares(data, {triple for line in triples.values() for triple in line})
    chosen = {c: [best[c], *([max(triples[c], key=compared.__getitem__)] if triples[c] else [])] for c in best}
    exact = _counted(data, {(c,) for c in own} | {key for keys in chosen.values() for key in keys})
    found = [
        Exposure(column=data.names[c], alone=exact[(c,)], best=_gaining(data, exact[(c,)], chosen.get(c, []), exact))
        for c in own
    ]
    return tuple(sorted(found, key=lambda exposure: -exposure.largest))


def _gaining(
    data: Encoded, alone: float, keys: list[tuple[int, ...]], exact: dict[tuple[int, ...], float]
) -> tuple[Combination, ...]:
    kept, reached = [], alone
    for key in keys:
        if exact[key] > reached + _GAIN:
            reached = exact[key]
            kept.append(Combination(columns=tuple(data.names[c] for c in key), unique=reached))
    return tuple(kept)


def _shares(data: Encoded, combinations: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    """Shares of unique rows, exact or estimated on sampled rows that are looked up in the whole table."""
    keys = sorted(combinations)
    if not keys or len(keys) * data.rows <= _VISITS:
        return _counted(data, keys)
    rows = np.sort(Rng(0).child("exposure").generator.choice(data.rows, min(_SCREENED, data.rows), replace=False))
    hits = Screen(data).alone(np.array(keys, dtype=np.int64), rows.astype(np.int64))
    return dict(zip(keys, (hits / len(rows)).tolist(), strict=True))


def _counted(data: Encoded, combinations: Iterable[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
    keys = sorted(combinations)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda key: divide(data, key).unique, keys)
        return {key: count / max(data.rows, 1) for key, count in zip(keys, counts, strict=True)}
