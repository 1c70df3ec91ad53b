"""Column combinations that single people out: minimal unique column combinations of microdata."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sfumato.errors import BadParameter
from sfumato.profiling.partitions import divide, encode
from sfumato.profiling.search import Search
from sfumato.progress import SILENT, Progress


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Columns, and the share of rows with unique values in them; counted exactly."""

    columns: tuple[str, ...]
    unique: float

    def to_dict(self) -> dict[str, object]:
        """The result as plain data."""
        return {"columns": list(self.columns), "unique": self.unique}


@dataclass(frozen=True, kw_only=True)
class Singling:
    """The combinations to report, and the effort of the search."""

    rows: int
    threshold: float
    minimal: tuple[Combination, ...]
    """Minimal combinations that reach the threshold: fewest columns first, then largest share."""
    others: tuple[Combination, ...]
    """The best of each size below the threshold."""
    more: int
    """Further minimal combinations that reach the threshold, by exact or estimated share."""
    size: int
    """Largest number of columns in an examined combination."""
    examined: int
    """Combinations counted or screened."""
    ruled_out: int
    """Combinations skipped because a bound proves them below those reported, or below 1 % of the rows."""
    sampled: int
    """Rows on which combinations were screened; 0 when all were counted."""
    margin: float
    """Half width of the 99 % confidence interval of a screened share; 0 when all were counted."""

    def to_dict(self) -> dict[str, object]:
        """The result as plain data."""
        plain = {name: getattr(self, name) for name in ("rows", "threshold", "more", "size", "examined")}
        plain |= {name: getattr(self, name) for name in ("ruled_out", "sampled", "margin")}
        plain["minimal"] = [c.to_dict() for c in self.minimal]
        plain["others"] = [c.to_dict() for c in self.others]
        return plain


def unique_share(frame: pl.DataFrame) -> float:
    """The share of rows whose values in all columns of the frame are unique.

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

    Every reported share is exact. Up to ``exact_visits`` rows times combinations, all combinations of a size are
    counted; beyond that they are first screened on a sample of rows, and one whose share is within the stated margin of
    the threshold may be missed.

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

    def named(keys: list[tuple[int, ...]]) -> tuple[Combination, ...]:
        names = search.data.names
        return tuple(Combination(columns=tuple(names[c] for c in key), unique=search.share(key)) for key in keys)

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
