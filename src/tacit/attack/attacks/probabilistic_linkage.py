"""Probabilistic record linkage (Fellegi and Sunter)."""

from __future__ import annotations

from math import prod
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import Field

from tacit.attack.attack import Discloses, Guesses, Linking, View
from tacit.attack.canonical import canonical
from tacit.attack.features import numbers
from tacit.attack.fellegi_sunter import Comparison, fit, link, thresholds
from tacit.attack.matching import compare
from tacit.errors import NotApplicable
from tacit.progress import SILENT, Progress
from tacit.rng import Rng

__all__ = ["ProbabilisticLinkage"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_PATTERNS = 2_000_000
"""At most so many combinations of levels are told apart; columns get fewer levels until it fits."""
_TABLE = 4_000_000
"""Largest table of known against released categories."""


class ProbabilisticLinkage(Linking):
    """Somebody who knows values of a person names the released row that most probably is hers, by weighing agreements.

    How much it says that a column agrees, nearly agrees or disagrees is learned from both files without knowing any
    true pair (expectation maximization), so no scale has to be chosen and rare agreement counts more than common
    agreement. Numbers are compared at several distances, categories by whether the released value may stand for the
    known one. With ``block`` only rows are compared that agree in those columns; who differs there cannot be found.
    """

    discloses: ClassVar[Discloses] = Discloses.IDENTITY
    pairwise: ClassVar[bool] = True
    examples: ClassVar = ({}, {"block": ["sex"], "knows": ["sex", "height", "income", "rent", "commute"]})
    reference: ClassVar[str] = (
        "Fellegi, I. P., Sunter, A. B. (1969). A theory for record linkage. Journal of the American Statistical "
        "Association 64. doi:10.1080/01621459.1969.10501049"
    )

    levels: Annotated[int, Field(ge=2, le=20)] = 6
    """Into how many levels of distance the comparison of numbers is cut."""
    block: tuple[str, ...] = ()
    """Known columns in which person and row must agree exactly."""

    def guess(self, view: View, rng: Rng, progress: Progress = SILENT) -> Guesses:
        names = [name for name in view.knows if name not in self.block]
        if not set(self.block) <= set(view.knows):
            raise NotApplicable("Blocking needs columns that the intruder knows.", columns=self.block)
        if not names:
            raise NotApplicable("No known column is left to compare besides those blocked on.", columns=view.knows)
        whole, used = self._comparison(view, names, rng)
        model = fit(whole, draw=rng.child("fit").generator)
        row = np.full(view.targets.height, -1, dtype=np.int64)
        confidence = np.zeros(view.targets.height)
        groups = list(_blocks(view, self.block))
        with progress.task("probabilistic linkage", len(groups)) as tick:
            for number, (people, rows) in enumerate(groups):
                part = Comparison(
                    known=whole.known[people],
                    released=whole.released[rows],
                    cuts=whole.cuts,
                    known_codes=whole.known_codes[people],
                    released_codes=whole.released_codes[rows],
                    fits=whole.fits,
                    levels=whole.levels,
                )
                found, share = link(part, model, rng.child("ties", number).generator)
                row[people] = rows[found]
                confidence[people] = share
                tick(1)
        gain = (model.matches * model.weight).sum(axis=1) / np.log(2)
        detail: dict[str, Any] = {
            "columns": {name: float(value) for name, value in zip(used, gain, strict=True)},
            "rounds": model.rounds,
        }
        return Guesses.of_rows(row, confidence, detail)

    def _comparison(self, view: View, names: list[str], rng: Rng) -> tuple[Comparison, list[str]]:
        left: list[Floats] = []
        right: list[Floats] = []
        tables: list[tuple[Ints, Ints, npt.NDArray[np.uint8]]] = []
        near: list[str] = []
        fitted: list[str] = []
        published = view.release.manifest.get("columns", {}) if view.transparent else {}
        for name in names:
            known, released = view.targets.get_column(name), view.release.table.column(name)
            numeric = known.dtype.is_numeric() or known.dtype.is_temporal()
            before, after = (numbers(known), numbers(released)) if numeric else (None, None)
            if before is not None and after is not None:
                held = after[np.isfinite(after)]
                middle, spread = (float(held.mean()), float(held.std())) if len(held) else (0.0, 0.0)
                if spread > 0:
                    left.append((np.nan_to_num(before, nan=middle) - middle) / spread)
                    right.append((np.nan_to_num(after, nan=middle) - middle) / spread)
                    near.append(name)
                continue
            table = _table(known, released, published.get(name, {}).get("hierarchy"))
            if table is not None:
                tables.append(table)
                fitted.append(name)
        if not near and not fitted:
            raise NotApplicable("No known column can be compared: all are constant or have too many values.")
        count = self.levels
        while count > 2 and count ** len(near) * 2 ** len(fitted) > _PATTERNS:
            count -= 1
        if prod([count] * len(near)) * 2 ** len(fitted) > _PATTERNS:
            raise NotApplicable("Too many columns to compare at once.", fix="Name fewer with `knows`.")
        a = np.column_stack(left) if left else np.empty((view.targets.height, 0))
        b = np.column_stack(right) if right else np.empty((view.release.table.rows, 0))
        cuts = thresholds(a, b, count, rng.child("levels").generator) if near else np.empty((0, count - 1))
        high = max((table[2].shape[0] for table in tables), default=1)
        wide = max((table[2].shape[1] for table in tables), default=1)
        fits = np.ones((len(tables), high, wide), dtype=np.uint8)
        for number, (_, _, level) in enumerate(tables):
            fits[number, : level.shape[0], : level.shape[1]] = level
        empty = np.empty((view.targets.height, 0), np.int64), np.empty((view.release.table.rows, 0), np.int64)
        comparison = Comparison(
            known=np.ascontiguousarray(a),
            released=np.ascontiguousarray(b),
            cuts=cuts,
            known_codes=np.column_stack([table[0] for table in tables]) if tables else empty[0],
            released_codes=np.column_stack([table[1] for table in tables]) if tables else empty[1],
            fits=fits,
            levels=np.array([count] * len(near) + [2] * len(fitted), dtype=np.int64),
        )
        return comparison, near + fitted


def _table(known: pl.Series, released: pl.Series, declared: object) -> tuple[Ints, Ints, npt.NDArray[np.uint8]] | None:
    """Level 0 where the released value may stand for the known one, else 1."""
    found = compare(known, released, declared)
    if len(found.values) * len(found.labels) > _TABLE or len(found.labels) < 2:
        return None
    level = np.ones((len(found.values), len(found.labels)), dtype=np.uint8)
    level[np.repeat(np.arange(len(found.values)), np.diff(found.starts)), found.fits] = 0
    return found.known, found.released, level


def _blocks(view: View, names: tuple[str, ...]) -> list[tuple[Ints, Ints]]:
    """People and rows that agree in the blocking columns."""
    if not names:
        return [(np.arange(view.targets.height), np.arange(view.release.table.rows))]

    def keyed(frame: pl.DataFrame, label: str) -> pl.DataFrame:
        key = pl.concat_str([canonical(frame[name]).fill_null("") for name in names], separator="\x1f")
        return (
            frame.select(key.alias("key"))
            .with_row_index("row")
            .group_by("key", maintain_order=True)
            .agg(pl.col("row").alias(label))
        )

    both = keyed(view.targets, "people").join(keyed(view.release.table.frame, "rows"), on="key", maintain_order="left")
    return [
        (np.array(people, dtype=np.int64), np.array(rows, dtype=np.int64))
        for people, rows in both.select("people", "rows").iter_rows()
    ]
