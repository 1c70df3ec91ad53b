"""Hierarchy of codes by masking characters."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field, field_validator

from sfumato.dataset.hierarchy import BoundHierarchy, Hierarchy


class MaskHierarchy(Hierarchy):
    """Replace characters of a code by ``*``, one more at each level, from the right or from the left.

    For codes whose first characters carry the most meaning (ZIP, ICD-10, telephone prefixes), mask from the right. A
    value shorter than the masked part is masked completely. The length of a value stays visible below the root.

    >>> hierarchy = MaskHierarchy.build("right").bind("zip", pl.Series(["02141", "02142"]))
    >>> hierarchy.rows()[0]
    ['02141', '0214*', '021**', '02***', '0****', '*****']
    """

    main: ClassVar[str | None] = "direction"
    examples = (
        {"direction": "right"},
        {"direction": "right", "steps": [2, 3]},
        {"direction": "left", "character": "x"},
    )
    sample = ("02141", "02139", "94105")

    direction: Literal["right", "left"]
    """The end that is masked first."""
    character: Annotated[str, Field(min_length=1, max_length=1)] = "*"
    """The character that replaces masked ones."""
    steps: tuple[Annotated[int, Field(ge=1)], ...] | None = None
    """Number of masked characters at each level, increasing. Default: one more at each level."""

    @field_validator("steps")
    @classmethod
    def _rising(cls, steps: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if steps is not None and any(b <= a for a, b in pairwise(steps)):
            raise ValueError("must increase from level to level")
        return steps

    def level_in_words(self, level: int) -> str:
        if level <= 0 or (self.steps is not None and level > len(self.steps)):
            return super().level_in_words(level) if level <= 0 else "all values removed (*)"
        count = level if self.steps is None else self.steps[level - 1]
        end = "last" if self.direction == "right" else "first"
        return f"{end} character masked" if count == 1 else f"{end} {count} characters masked"

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        leaves = values.unique().sort()
        text = leaves.cast(pl.String)
        length = text.str.len_chars()
        longest = int(length.max() or 1)  # type: ignore[arg-type]
        steps = [n for n in self.steps or range(1, longest) if n < longest]
        labels = [self._masked(text, length, n) for n in steps]
        return BoundHierarchy.from_labels(column, leaves, [*labels, [self.character * longest] * len(leaves)])

    def _masked(self, text: pl.Series, length: pl.Series, count: int) -> pl.Series:
        frame = pl.DataFrame({"text": text, "length": length.cast(pl.Int64)})
        kept = pl.max_horizontal(pl.col("length") - count, pl.lit(0))
        visible = pl.col("text").str.head(kept) if self.direction == "right" else pl.col("text").str.tail(kept)
        # one run of mask characters, cut to the length of each value
        run = pl.lit(self.character * max(count, 1)).str.head(pl.min_horizontal(pl.col("length"), pl.lit(count)))
        parts = [visible, run] if self.direction == "right" else [run, visible]
        return frame.select(pl.concat_str(parts).alias("label")).to_series()
