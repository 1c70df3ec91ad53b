"""Generalization hierarchies: how a value becomes coarser, level by level, up to ``*``.

A :class:`Hierarchy` is the rule ("five-year bands, then ten", "mask a ZIP from the right"). Applied to the values of
a column it gives a :class:`BoundHierarchy`, the table of labels that searches, attacks and measures work with.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from sfumato.params import Part
from sfumato.registry import registry
from sfumato.schema.bound_hierarchy import ROOT, BoundHierarchy, Codes, Level, root_only, with_missing

__all__ = [
    "ROOT",
    "BoundHierarchy",
    "Codes",
    "Hierarchy",
    "Level",
    "hierarchy_from_dict",
    "root_only",
    "with_missing",
]


class Hierarchy(Part):
    """A rule that makes values coarser."""

    suffix = "Hierarchy"

    sample: ClassVar[tuple[Any, ...]] = ()
    """Values of a column on which ``examples`` can be shown; the contract tests and the docs use them."""

    @abstractmethod
    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        """Lay the rule over the distinct, non-null ``values`` of a column.

        A hierarchy with a domain of its own (a file, a taxonomy) ignores which values occur; the others cover just
        these. Leaves have the type of ``values`` wherever they can, and the last level is a single group.
        """

    def public(self) -> dict[str, Any]:
        """The rule as it may be published. Never the values that happen to occur in the data."""
        return {self.part_name(): self.to_dict()}


def hierarchy_from_dict(value: object, *, base: Path | None = None) -> Hierarchy | None:
    """``{intervals: [5, 10]}`` as a hierarchy. None and hierarchies pass through."""
    if value is None or isinstance(value, Hierarchy):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        names = ", ".join(registry("hierarchy").names())
        raise ValueError(f"a hierarchy is one of {names}, with its setting: {{intervals: [5, 10, 20]}}")
    [(name, setting)] = value.items()
    part = registry("hierarchy").get(str(name)).build(setting, base=base)
    assert isinstance(part, Hierarchy)
    return part
