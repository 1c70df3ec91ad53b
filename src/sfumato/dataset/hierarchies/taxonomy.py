"""Hierarchy from a taxonomy tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import polars as pl
from pydantic import field_validator

from sfumato.dataset.hierarchy import ROOT, BoundHierarchy, Hierarchy
from sfumato.dataset.hierarchy_rows import as_text, typed_leaves


class TaxonomyHierarchy(Hierarchy):
    """Any tree: mappings name the groups, lists hold the values.

    Levels are counted from the root, so that the main branches are on the same level. A value nearer to the root than
    others stays itself on the lower levels. A label may occur in one branch only.

    >>> tree = {"Europe": {"West": ["France", "Spain"], "East": ["Poland"]}, "Asia": ["China"]}
    >>> rule = TaxonomyHierarchy.build({"tree": tree})
    >>> for line in rule.bind("country", pl.Series(["China"])).rows():
    ...     print(line)
    ['France', 'West', 'Europe', '*']
    ['Spain', 'West', 'Europe', '*']
    ['Poland', 'East', 'Europe', '*']
    ['China', 'China', 'Asia', '*']
    """

    main: ClassVar[str | None] = "tree"
    examples = ({"tree": {"Europe": {"West": ["France", "Spain"], "East": ["Poland"]}, "Asia": ["China"]}},)
    sample = ("China", "Poland")

    tree: dict[str, Any] | list[Any]
    """The branches under the root: ``{group: {group: [value, ...]}, group: [value, ...]}``."""

    @field_validator("tree")
    @classmethod
    def _well_formed(cls, tree: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        if not list(_paths(tree, ())):
            raise ValueError("the tree has no values; lists hold the values, mappings the groups")
        return tree

    def bind(self, column: str, values: pl.Series) -> BoundHierarchy:
        paths = list(_paths(self.tree, ()))
        depth = max(len(path) for path in paths)
        leaves = typed_leaves([path[0] for path in paths], values.dtype)
        padded = [(path[0],) * (depth - len(path)) + path for path in paths]
        labels = [[path[level] for path in padded] for level in range(1, depth)]
        return BoundHierarchy.from_labels(column, leaves, [*labels, [ROOT] * len(leaves)])


def _paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every value with its groups, nearest first."""
    match node:
        case dict():
            for name, below in node.items():
                yield from _paths(below, (str(name), *above))
        case list() | tuple():
            for item in node:
                yield from _paths(item, above)
        case None:
            if above:  # a key without children is itself a value
                yield above
        case bool() | int() | float() | str():
            text = as_text(node)
            if text is not None:
                yield (text, *above)
        case _:
            raise ValueError(f"a tree is made of mappings, lists and values, not {type(node).__name__}")
