"""Scores of equal values: for each target, the weights of the values that a release row shares with it.

Rows are indexed by value: to score a target, only the rows that share one of its values are read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.normalize import canonical
from sfumato.data.row_codes import value_codes
from sfumato.deadline import batches
from sfumato.kernels import kernel
from sfumato.progress import Progress
from sfumato.threads import map_slices

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

UNIT = 1024.0
"""Scores are whole numbers, so that equal ones are equal; so many are one natural logarithm."""
MISSING = " is missing"
"""Ending of the name of a compared column that says whether a value is missing."""


@dataclass(frozen=True, kw_only=True)
class BestRows:
    """The rows with the highest scores of each target that was reached in time, best first."""

    row: Ints
    score: Ints
    ties: Ints
    """Number of rows with the highest score."""


@dataclass(frozen=True, kw_only=True)
class Postings:
    """Release rows by value: those of code g are ``rows[starts[g]:starts[g + 1]]``; -1 is a missing value."""

    columns: tuple[str, ...]
    targets: Codes
    """Codes of the targets, one column each; codes of different columns differ."""
    released: Codes
    rows: Codes
    starts: Ints
    column: Ints
    """The column of each code."""

    @classmethod
    def of(cls, view: View, draw: np.random.Generator) -> Postings:
        """The known columns of a view; release rows with the same value come in random order."""
        table, count = view.release.table, view.targets.height
        mixed = draw.permutation(table.rows).astype(np.int32)
        columns: list[str] = []
        codes: list[Ints] = []
        for name in view.knows:
            text = pl.concat([canonical(view.targets.get_column(name)), canonical(table.column(name))])
            number = value_codes(text)[0].astype(np.int64)
            missing = text.is_null().to_numpy()
            columns.append(name)
            codes.append(np.where(missing, -1, number))
            if missing[:count].any() and missing[count:].any() and not view.blanks_unknown:
                columns.append(name + MISSING)
                codes.append(missing.astype(np.int64))
        first = 0
        rows, starts, column = [], [np.zeros(1, dtype=np.int64)], []
        for place, number in enumerate(codes):
            size = int(number.max(initial=-1)) + 1
            own = number[count:][mixed]
            order = np.argsort(own, kind="stable")
            order = order[own[order] >= 0]
            rows.append(mixed[order])
            starts.append(starts[-1][-1] + np.cumsum(np.bincount(own[order], minlength=size)))
            column.append(np.full(size, place))
            number[number >= 0] += first
            first += size
        both = np.column_stack(codes).astype(np.int32)
        return cls(
            columns=tuple(columns),
            targets=np.ascontiguousarray(both[:count]),
            released=np.ascontiguousarray(both[count:]),
            rows=np.concatenate(rows),
            starts=np.concatenate(starts),
            column=np.concatenate(column),
        )

    @property
    def sizes(self) -> Ints:
        """Number of release rows with each code."""
        return np.diff(self.starts)

    @property
    def _shares(self) -> Floats:
        """The share of the release rows with each code."""
        return np.maximum(self.sizes, 1) / len(self.released)

    @property
    def recurs(self) -> Bools:
        """For each column whether a value of a target occurs in the release."""
        sizes = self.sizes
        return np.array([sizes[codes[codes >= 0]].any() for codes in self.targets.T])

    def weights(self, kept: Floats) -> Codes:
        """The weight of each value if columns kept these shares of the values and drew the others at random."""
        share, own = self._shares, kept[self.column]
        return np.round(UNIT * np.log((own + (1 - own) * share) / share / (1 - own))).astype(np.int32)

    def share_kept(self, first: BestRows) -> Floats:
        """The share of values that each column kept, from the clearest half of the pairs found first.

        Other values are equal as often as those of two random people.
        """
        margin = first.score[:, 0] - first.score[:, -1]
        clear = np.argsort(-margin, kind="stable")[: max(1, len(margin) // 2)]
        known, released = self.targets[clear], self.released[first.row[clear, 0]]
        usable = (known >= 0) & (released >= 0)
        equal = (((known == released) & usable).sum(axis=0) + 0.5) / (usable.sum(axis=0) + 1)
        alike = np.bincount(self.column, self._shares**2, len(self.columns))
        kept: Floats = np.clip((equal - alike) / np.maximum(1 - alike, 1e-9), 0.02, 0.99)
        return kept

    def contributions(self, weights: Codes, kept: Floats) -> dict[str, float]:
        """The expected score of a person's own row from each known column, its blanks included."""
        total: dict[str, float] = {}
        for name, codes, share in zip(self.columns, self.targets.T, kept, strict=True):
            known = codes[codes >= 0]
            own = name.removesuffix(MISSING)
            score = float(share * weights[known].mean() / UNIT) if len(known) else 0.0
            total[own] = total.get(own, 0.0) + score
        return total

    def score(self, weights: Codes, rows: Ints) -> Ints:
        """The score of one row for each of the first targets."""
        known = self.targets[: len(rows)]
        equal = (known == self.released[rows]) & (known >= 0)
        score: Ints = np.where(equal, weights[known], 0).sum(axis=1)
        return score


def best_rows(postings: Postings, weights: Codes, targets: int, count: int, progress: Progress) -> BestRows:
    """The ``count`` rows with the highest scores for each of the first targets."""
    count = min(count, len(postings.released))
    row = np.empty((targets, count), dtype=np.int64)
    score = np.empty((targets, count), dtype=np.int64)
    ties = np.empty(targets, dtype=np.int64)

    def search(part: slice) -> None:
        _search(
            postings.targets[part],
            postings.rows,
            postings.starts,
            weights,
            len(postings.released),
            part.start,
            row[part],
            score[part],
            ties[part],
        )

    done = 0
    for part in batches(progress, "rare values", targets, 1000):
        map_slices(search, part)
        done = part.stop
    return BestRows(row=row[:done], score=score[:done], ties=ties[:done])


@kernel(nogil=True)
def _search(  # pragma: no cover - compiled
    targets: Codes,
    rows: Codes,
    starts: Ints,
    weights: Codes,
    released: int,
    first: int,
    row: Ints,
    score: Ints,
    ties: Ints,
) -> None:
    """The best rows of each target. Rows of equal score are taken from a place on that differs between targets."""
    total = np.zeros(released, dtype=np.int64)
    kept = row.shape[1]
    for target in range(targets.shape[0]):
        total[:] = 0
        for code in targets[target]:
            if code >= 0:
                for place in range(starts[code], starts[code + 1]):
                    total[rows[place]] += weights[code]
        begin = (first + target) * 7919 % released
        found = 0
        equal = 0
        for step in range(released):
            one = begin + step
            if one >= released:
                one -= released
            value = total[one]
            if found == kept and value < score[target, kept - 1]:
                continue
            if found and value == score[target, 0]:
                equal += 1
            if found == kept and value == score[target, kept - 1]:
                continue
            if found == 0 or value > score[target, 0]:
                equal = 1
            place = min(found, kept - 1)
            while place > 0 and score[target, place - 1] < value:
                score[target, place] = score[target, place - 1]
                row[target, place] = row[target, place - 1]
                place -= 1
            score[target, place] = value
            row[target, place] = one
            found = min(found + 1, kept)
        ties[target] = equal
