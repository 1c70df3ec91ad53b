"""Which columns, taken together, single people out."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sfumato.errors import BadParameter
from sfumato.profiling.partitions import divide, encode
from sfumato.profiling.search import Search
from sfumato.progress import SILENT, Progress

__all__ = ["Combination", "Singling", "single_out", "unique_share"]


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Columns, and the share of rows that are alone with their values in them; counted, not estimated."""

    columns: tuple[str, ...]
    unique: float

    def to_dict(self) -> dict[str, object]:
        """For a JSON document."""
        return {"columns": list(self.columns), "unique": self.unique}


@dataclass(frozen=True, kw_only=True)
class Singling:
    """The combinations worth showing, and how they were found."""

    rows: int
    threshold: float
    minimal: tuple[Combination, ...]
    """Smallest combinations that single out at least the threshold: fewest columns first, then largest share."""
    others: tuple[Combination, ...]
    """The best of each size among those that stay below the threshold."""
    more: int
    """Smallest combinations that reach the threshold and are not listed, counted exactly or by estimate."""
    size: int
    """Largest number of columns in a combination that was looked at."""
    examined: int
    """Combinations counted or screened."""
    ruled_out: int
    """Combinations not counted: proved to stay below those that are shown, or below one row in a hundred."""
    sampled: int
    """Rows on which combinations were screened; 0 when all were counted."""
    margin: float
    """How far a screened share may be from the truth, at 99 % confidence; 0 when all were counted."""

    def to_dict(self) -> dict[str, object]:
        """For a JSON document."""
        plain = {name: getattr(self, name) for name in ("rows", "threshold", "more", "size", "examined")}
        plain |= {name: getattr(self, name) for name in ("ruled_out", "sampled", "margin")}
        plain["minimal"] = [c.to_dict() for c in self.minimal]
        plain["others"] = [c.to_dict() for c in self.others]
        return plain


def unique_share(frame: pl.DataFrame) -> float:
    """The share of rows that are alone with their values in all columns of the frame.

    >>> unique_share(pl.DataFrame({"zip": [1, 1, 2, 3], "sex": ["f", "f", "f", "m"]}))
    0.5
    """
    data = encode(frame)
    return divide(data, range(frame.width)).unique / data.rows


def single_out(
    frame: pl.DataFrame,
    *,
    max_size: int = 4,
    threshold: float = 0.5,
    show: int = 12,
    progress: Progress = SILENT,
    exact_visits: int = 150_000_000,
) -> Singling:
    """Find the smallest combinations of up to ``max_size`` columns that single out at least ``threshold`` of the rows.

    Everything shown was counted exactly. Up to ``exact_visits`` rows times combinations, all combinations of a size are
    counted; beyond that they are screened on a sample of rows first, and one whose share lies within the stated margin
    of the threshold may then be missed.

    >>> people = pl.DataFrame({"zip": [1, 1, 2, 2], "sex": ["f", "m", "f", "m"], "hair": ["a", "a", "a", "a"]})
    >>> [(c.columns, c.unique) for c in single_out(people).minimal]
    [(('zip', 'sex'), 1.0)]
    """
    if not 1 <= max_size <= 4:
        raise BadParameter(f"Combinations can have 1 to 4 columns, not {max_size}.")
    if not 0 < threshold <= 1:
        raise BadParameter(f"The threshold is a share of the rows, above 0 and up to 1, not {threshold}.")
    with progress.task("Looking for combinations that single people out", max_size) as tick:
        search = Search(encode(frame), threshold=threshold, show=show, exact_visits=exact_visits)
        for _ in search.levels(max_size):
            tick(1)

    def named(found: list[tuple[int, ...]]) -> tuple[Combination, ...]:
        names = search.data.names
        return tuple(Combination(columns=tuple(names[c] for c in f), unique=search.share(f)) for f in found)

    return Singling(
        rows=frame.height,
        threshold=threshold,
        minimal=named(search.minimal),
        others=named(search.others),
        more=search.more,
        size=search.size,
        examined=search.examined,
        ruled_out=search.ruled_out,
        sampled=search.sampled,
        margin=search.margin,
    )
