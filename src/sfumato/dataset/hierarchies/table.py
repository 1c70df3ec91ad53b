"""Hierarchy written as a table in the recipe."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from sfumato.dataset.hierarchy import BoundHierarchy, Hierarchy
from sfumato.dataset.hierarchy_rows import Scalar, as_text, bound_from_rows


class TableHierarchy(Hierarchy):
    """One line per value: the value, then its label at each level, the last being the root.

    The lines of a hierarchy file, inline in the recipe. Values need not occur in the data; a value of the data without
    a line is refused.

    >>> rule = TableHierarchy.build([["Berlin", "Germany", "*"], ["Paris", "France", "*"]])
    >>> rule.bind("city", pl.Series(["Paris"])).generalize(pl.Series("city", ["Paris"]), 1).to_list()
    ['France']
    """

    main: ClassVar[str | None] = "rows"
    examples = ({"rows": [["Berlin", "Germany", "*"], ["Bonn", "Germany", "*"], ["Paris", "France", "*"]]},)
    sample = ("Bonn", "Paris")

    rows: Annotated[tuple[tuple[Scalar, ...], ...], Field(min_length=1)]
    """The lines. An empty first cell is the line of the missing value."""

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        return bound_from_rows(column, values, [[as_text(cell) for cell in row] for row in self.rows])
