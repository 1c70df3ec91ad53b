"""Contract of a generalization hierarchy: complete, nested, typed, and rebuilt from what it publishes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from sfumato.dataset import FileHierarchy, Hierarchy
from sfumato.dataset.hierarchy import BoundHierarchy, hierarchy_from_dict
from sfumato.testing.parts import run_checks


def check_hierarchy(hierarchy: Hierarchy) -> None:
    """Raise AssertionError unless ``hierarchy`` keeps the contract of a hierarchy, on its own ``sample`` of values.

    Every value has a group on every level; groups are nested and end in one; intervals contain their numbers; the
    public form, the plain form and a CSV file give the same hierarchy; the order of the values does not matter.
    """
    run_checks(hierarchy, HIERARCHY_CHECKS)


def _bind(hierarchy: Hierarchy) -> tuple[pl.Series, BoundHierarchy]:
    values = pl.Series("c", hierarchy.sample)
    return values, hierarchy.bind("c", values)


def has_a_sample(hierarchy: Hierarchy) -> None:
    assert len(hierarchy.sample) >= 2, "`sample` needs two values or more"


def is_complete_and_typed_like_the_column(hierarchy: Hierarchy) -> None:
    values, bound = _bind(hierarchy)
    assert bound.leaves.dtype == values.dtype, "level 0 has another type than the column"
    assert bound.gaps(values).is_empty(), "some sample values have no group"
    assert bound.decode(bound.encode(values), 0).equals(values), "encoding and decoding at level 0 changes values"


def is_nested_and_ends_in_one_group(hierarchy: Hierarchy) -> None:
    _, bound = _bind(hierarchy)
    assert bound.height >= 1, "there is no level above the values"
    assert bound.levels[-1].size == 1, "the top level has several groups"
    for finer, coarser in zip(bound.levels, bound.levels[1:], strict=False):
        pairs = set(zip(finer.codes.tolist(), coarser.codes.tolist(), strict=True))
        assert len(pairs) == finer.size, "a level splits a group of the level below"
        assert coarser.size <= finer.size, "a higher level has more groups"
        assert coarser.labels.dtype == pl.String, "labels above level 0 must be text"


def bounds_contain_every_number(hierarchy: Hierarchy) -> None:
    values, bound = _bind(hierarchy)
    if not values.dtype.is_numeric():
        assert all(level.low is None for level in bound.levels), "only levels of numbers have bounds"
        return
    numbers = bound.leaves.cast(pl.Float64).to_numpy()
    for level in bound.levels[1:]:
        assert level.low is not None, "a level of numbers has no bounds"
        assert level.high is not None, "a level of numbers has no bounds"
        assert np.all(level.low[level.codes] <= numbers), "a number lies below its interval"
        assert np.all(numbers <= level.high[level.codes]), "a number lies above its interval"


def csv_round_trip(hierarchy: Hierarchy) -> None:
    values, bound = _bind(hierarchy)
    with tempfile.TemporaryDirectory() as folder:
        bound.to_csv(Path(folder, "out.csv"))
        again = FileHierarchy.build("out.csv", base=Path(folder)).bind("c", values)
    assert again == bound, "the hierarchy differs after writing it to CSV and reading it back"


def public_form_rebuilds_it(hierarchy: Hierarchy) -> None:
    values, bound = _bind(hierarchy)
    [(name, parameters)] = hierarchy.public().items()
    own = name == hierarchy.part_name()  # it need not be registered
    rebuilt = type(hierarchy).build(parameters) if own else hierarchy_from_dict({name: parameters})
    assert rebuilt is not None, "the public form gives no hierarchy"
    assert rebuilt.bind("c", values) == bound, "the public form gives another hierarchy"
    places = [str(value) for value in dict(hierarchy).values() if isinstance(value, Path)]
    assert not any(place in str(hierarchy.public()) for place in places), "the public form names a file"


def binding_to_its_own_values_changes_nothing(hierarchy: Hierarchy) -> None:
    _, bound = _bind(hierarchy)
    assert hierarchy.bind("c", bound.leaves) == bound, "binding to the values of level 0 gives another hierarchy"


def order_of_the_values_does_not_matter(hierarchy: Hierarchy) -> None:
    values, bound = _bind(hierarchy)
    assert hierarchy.bind("c", values.reverse()) == bound, "the order of the values changes the hierarchy"


def an_all_missing_column_has_a_root(hierarchy: Hierarchy) -> None:
    values, _ = _bind(hierarchy)
    assert hierarchy.bind("c", values.clear()).levels[-1].size <= 1, "a column without values has several roots"


HIERARCHY_CHECKS = (
    has_a_sample,
    is_complete_and_typed_like_the_column,
    is_nested_and_ends_in_one_group,
    bounds_contain_every_number,
    csv_round_trip,
    public_form_rebuilds_it,
    binding_to_its_own_values_changes_nothing,
    order_of_the_values_does_not_matter,
    an_all_missing_column_has_a_root,
)
