"""What every registered hierarchy promises, on its own examples and sample values."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sfumato.registry import registry
from sfumato.schema.hierarchies.file import FileHierarchy
from sfumato.schema.hierarchy import BoundHierarchy, Hierarchy, hierarchy_from_dict

CASES = [
    pytest.param(kind, example, id=f"{kind.part_name()}-{number}")
    for kind in registry("hierarchy")
    for number, example in enumerate(kind.examples)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tmp_path.joinpath("city.csv").write_text("Berlin;Germany;*\nBonn;Germany;*\nParis;France;*\n")
    return tmp_path


def laid(kind: type[Hierarchy], example: dict, folder: Path) -> tuple[Hierarchy, pl.Series, BoundHierarchy]:
    rule = kind.build(example, base=folder)
    values = pl.Series("c", kind.sample)
    return rule, values, rule.bind("c", values)


@pytest.mark.parametrize(("kind", "example"), CASES)
class TestEveryHierarchy:
    def test_has_a_sample(self, kind, example, folder):
        assert len(kind.sample) >= 2

    def test_is_complete_and_typed_like_the_column(self, kind, example, folder):
        _, values, hierarchy = laid(kind, example, folder)
        assert hierarchy.leaves.dtype == values.dtype
        assert hierarchy.gaps(values).is_empty()
        assert hierarchy.decode(hierarchy.encode(values), 0).equals(values)

    def test_is_nested_and_ends_in_one_group(self, kind, example, folder):
        _, _, hierarchy = laid(kind, example, folder)
        assert hierarchy.height >= 1
        assert hierarchy.levels[-1].size == 1
        for finer, coarser in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
            pairs = {(a, b) for a, b in zip(finer.codes.tolist(), coarser.codes.tolist(), strict=True)}
            assert len(pairs) == finer.size
            assert coarser.size <= finer.size
            assert coarser.labels.dtype == pl.String

    def test_bounds_hold_every_number(self, kind, example, folder):
        _, values, hierarchy = laid(kind, example, folder)
        if not values.dtype.is_numeric():
            assert all(level.low is None for level in hierarchy.levels)
            return
        numbers = hierarchy.leaves.cast(pl.Float64).to_numpy()
        for level in hierarchy.levels[1:]:
            assert np.all(level.low[level.codes] <= numbers)
            assert np.all(numbers <= level.high[level.codes])

    def test_csv_round_trip(self, kind, example, folder):
        _, values, hierarchy = laid(kind, example, folder)
        hierarchy.to_csv(folder / "out.csv")
        again = FileHierarchy.build("out.csv", base=folder).bind("c", values)
        assert again == hierarchy

    def test_public_form_rebuilds_it(self, kind, example, folder):
        rule, values, hierarchy = laid(kind, example, folder)
        rebuilt = hierarchy_from_dict(rule.public())
        assert rebuilt.bind("c", values) == hierarchy
        assert str(folder) not in str(rule.public())

    def test_plain_form_rebuilds_it(self, kind, example, folder):
        rule, _, _ = laid(kind, example, folder)
        assert hierarchy_from_dict({kind.part_name(): rule.to_dict()}, base=folder) == rule

    def test_laying_it_over_its_own_leaves_changes_nothing(self, kind, example, folder):
        rule, _, hierarchy = laid(kind, example, folder)
        assert rule.bind("c", hierarchy.leaves) == hierarchy

    def test_order_of_the_values_does_not_matter(self, kind, example, folder):
        rule, values, hierarchy = laid(kind, example, folder)
        assert rule.bind("c", values.reverse()) == hierarchy

    def test_an_all_missing_column_has_a_root(self, kind, example, folder):
        rule, values, _ = laid(kind, example, folder)
        assert rule.bind("c", values.clear()).levels[-1].size <= 1
