"""Base class of generalization hierarchies, which map a value to coarser labels, level by level, up to ``*``.

A :class:`Hierarchy` is a rule ("five-year intervals, then ten", "mask a ZIP from the right"). :meth:`Hierarchy.bind`
applies it to the values of a column and returns a :class:`BoundHierarchy`, the table of labels that searches, attacks
and measures use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from sfumato.arrays import Floats
from sfumato.dataset.bound_hierarchy import ROOT, BoundHierarchy, Codes, Level, range_label, root_only, with_missing
from sfumato.errors import WrongKind
from sfumato.params import Part
from sfumato.registry import registry

__all__ = [
    "ROOT",
    "BoundHierarchy",
    "Codes",
    "Hierarchy",
    "Level",
    "hierarchy_from_dict",
    "number_leaves",
    "range_label",
    "root_only",
    "with_missing",
]


class Hierarchy(Part):
    """A rule that generalizes the values of a column."""

    suffix = "Hierarchy"

    sample: ClassVar[tuple[Any, ...]] = ()
    """Column values to which ``examples`` apply; contract tests and docs use them."""

    @abstractmethod
    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        """Bind the rule to the distinct, non-null ``values`` of a column.

        A hierarchy with its own domain (a file, a taxonomy) keeps all its values; the others cover exactly ``values``.
        Leaves have the type of ``values`` where possible, and the last level is a single group.
        """

    def level_in_words(self, level: int) -> str:
        """A level of the hierarchy in words, for reports and codebooks; level 0 is the value itself."""
        return f"level {level} of its hierarchy"

    def public(self) -> dict[str, Any]:
        """The public form of the rule, without values that occur only in the data."""
        return {self.part_name(): self.to_dict()}


def number_leaves(column: str, values: pl.Series) -> tuple[pl.Series, Floats]:
    """The distinct values of a column of numbers in ascending order, as they are and as floats."""
    if not values.dtype.is_numeric():
        raise WrongKind(
            f"The hierarchy of `{column}` is made of intervals of numbers, but the column does not hold numbers.",
            fix=f"Declare `{column}: {{kind: integer, ...}}` (or number), or choose another hierarchy.",
            column=column,
        )
    leaves = values.unique().sort().alias(column)
    numbers = leaves.cast(pl.Float64).to_numpy()
    if not np.isfinite(numbers).all():
        raise WrongKind(f"Column `{column}` holds NaN or infinity, which lie in no interval.", column=column)
    return leaves, numbers


def hierarchy_from_dict(value: object, *, base: Path | None = None) -> Hierarchy | None:
    """Build a hierarchy from ``{intervals: [5, 10]}``. None and hierarchies are returned unchanged."""
    if value is None or isinstance(value, Hierarchy):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        names = ", ".join(registry("hierarchy").names())
        raise ValueError(f"a hierarchy is one of {names}, with its setting: {{intervals: [5, 10, 20]}}")
    [(name, setting)] = value.items()
    part = registry("hierarchy").get(str(name)).build(setting, base=base)
    assert isinstance(part, Hierarchy)
    return part
