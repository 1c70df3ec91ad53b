"""What the rules of models on sensitive values promise a search is true of classes with missing values too."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.arrays import Ints, Mask
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.equivalence_classes import ClassGroups, compress
from sfumato.masking.model import ModelRule, Monotonicity
from sfumato.registry import registry

MODELS: list[tuple[str, dict[str, Any]]] = [
    ("alpha-k", {"alpha": 0.5, "k": 2}),
    ("alpha-k", {"alpha": 0.5, "k": 2, "healthy": ["a"]}),
    ("t-closeness", {"t": 0.2}),
    ("t-closeness", {"t": 0.2, "distance": "ordered"}),
    ("t-closeness", {"t": 0.2, "distance": "hierarchical"}),
    ("beta-likeness", {"beta": 0.5}),
    ("delta-disclosure", {"delta": 1}),
    ("l-diversity", {"l": 2}),
    ("l-diversity", {"l": 1.8, "kind": "entropy"}),
    ("l-diversity", {"l": 2, "kind": "recursive", "c": 2}),
    ("p-sensitive", {"p": 2, "k": 3}),
]


def bound(name: str, parameters: dict[str, Any]) -> tuple[ModelRule, Mask]:
    """The rule, and which of the values is the missing one."""
    values = ["a"] * 16 + ["b"] * 12 + ["c"] * 12 + [None] * 10
    tree = {"taxonomy": {"tree": {"x": ["a", "b"], "y": ["c"]}}}
    hierarchy: Any = tree if parameters.get("distance") == "hierarchical" else None
    columns = {"q": Column(role=Role.QUASI), "s": Column(role=Role.SENSITIVE, hierarchy=hierarchy)}
    table = compress(Data.of(Table(frame=pl.DataFrame({"q": [1] * 50, "s": values})), Schema(columns=columns)))
    missing = table.track("s").hierarchy.leaves.is_null().to_numpy()
    assert (len(missing), missing.sum()) == (4, 1)
    return registry("model").get(name).build(parameters).bind(table), missing


def passing(rule: ModelRule, counts: Ints) -> Any:
    sizes = counts.sum(axis=1)
    return (sizes >= rule.min_class_size) & rule.passes(ClassGroups(sizes=sizes, histograms={"s": counts}))


@pytest.mark.parametrize(("name", "parameters"), MODELS)
def test_merged_classes_pass_as_declared(name: str, parameters: dict[str, Any]) -> None:
    rule, _ = bound(name, parameters)
    counts = np.array(list(product(range(4), repeat=4)), dtype=np.int64)[1:]
    passed = passing(rule, counts)
    assert passed.any()
    assert not passed.all()
    assert rule.monotonicity is not Monotonicity.NONE
    others = counts if rule.monotonicity is Monotonicity.ANY else counts[passed]
    for one in counts[passed]:
        assert passing(rule, one + others).all()


@pytest.mark.parametrize(("name", "parameters"), MODELS)
def test_rows_due_are_never_more_than_the_fewest(name: str, parameters: dict[str, Any]) -> None:
    rule, _ = bound(name, parameters)
    random = np.random.default_rng(4)
    some = 0
    for counts in random.integers(0, 6, (60, 4)):
        whole = ClassGroups(sizes=np.array([counts.sum()]), histograms={"s": counts[None, :]})
        if not counts.sum():
            continue
        kept = np.array(list(product(*(range(int(n) + 1) for n in counts))), dtype=np.int64)[1:]
        fewest = int(counts.sum() - kept[passing(rule, kept)].sum(axis=1).max(initial=0))
        due = int(rule.min_suppressed_rows(whole, passing(rule, counts[None, :]))[0])
        assert due <= fewest
        some += due > 0
    assert some


@pytest.mark.parametrize(("name", "parameters"), MODELS)
def test_missing_values_change_no_value(name: str, parameters: dict[str, Any]) -> None:
    rule, missing = bound(name, parameters)
    counts = np.zeros((3, 4), dtype=np.int64)
    counts[:, ~missing] = [[3, 1, 2], [1, 4, 1], [2, 2, 2]]
    more = counts + 9 * missing
    one, other = (rule.values(ClassGroups(sizes=c.sum(axis=1), histograms={"s": c})) for c in (counts, more))
    assert one == pytest.approx(other)
