"""Hierarchy of ordered categories: neighbouring values are grouped."""

from __future__ import annotations

from itertools import accumulate
from typing import Annotated, ClassVar, Literal, Self

import polars as pl
from pydantic import Field, model_validator

from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy
from sfumato.dataset.hierarchy_rows import Scalar, as_text, typed_leaves

Size = Annotated[int, Field(ge=1)]


class GroupsHierarchy(Hierarchy):
    """Ordered values (grades, income classes), grouped with their neighbours level by level.

    Each level states how many groups of the level below it joins: one number for all (the last group may be smaller),
    or a list with one number per group.

    >>> rule = GroupsHierarchy.build({"order": ["low", "middle", "high", "top"], "sizes": [2]})
    >>> rule.bind("grade", pl.Series(["low"])).rows()[1]
    ['middle', 'low – middle', '*']
    """

    main: ClassVar[str | None] = None
    examples = (
        {"order": ["low", "middle", "high", "top"], "sizes": [2]},
        {"order": ["low", "middle", "high", "top"], "sizes": [[1, 2, 1], [1, 2]], "labels": "set"},
    )
    sample = ("high", "low")

    order: Annotated[tuple[Scalar, ...], Field(min_length=1)]
    """All values of the column, from first to last."""
    sizes: tuple[Size | tuple[Size, ...], ...]
    """For each level, how many groups of the level below are joined; ``*`` is added."""
    labels: Literal["range", "set"] = "range"
    """A group's label: first and last value (``low – middle``) or all of them (``{low, middle}``)."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        below = len(self.order)
        for number, size in enumerate(self.sizes, start=1):
            if isinstance(size, tuple) and sum(size) != below:
                raise ValueError(f"the sizes of level {number} add up to {sum(size)}, but there are {below} to join")
            below = len(size) if isinstance(size, tuple) else -(-below // size)
        return self

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        texts = [as_text(value) or "" for value in self.order]
        groups = [[text] for text in texts]
        labels: list[list[str | None]] = []
        for size in self.sizes:
            sizes = size if isinstance(size, tuple) else (size,) * -(-len(groups) // size)
            ends = list(accumulate(sizes))
            groups = [
                [leaf for group in groups[end - count : end] for leaf in group]
                for end, count in zip(ends, sizes, strict=True)
            ]
            labels.append([self._label(group) for group in groups for _ in group])
        return BoundHierarchy.from_labels(column, typed_leaves(texts, values.dtype), [*labels, [ROOT] * len(texts)])

    def _label(self, group: list[str]) -> str:
        if len(group) == 1:
            return group[0]
        return f"{group[0]} – {group[-1]}" if self.labels == "range" else "{" + ", ".join(group) + "}"
