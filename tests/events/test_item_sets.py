"""k^m-anonymity and rho-uncertainty against brute force, and checks that find what a broken search leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import BadParameter, NotApplicable
from sfumato.events import common_events as aggregation
from sfumato.events import supported_items as search
from sfumato.events.association_check import largest_confidence
from sfumato.events.item_set_check import smallest_support
from sfumato.events.methods.generalize_items import GeneralizeItems
from sfumato.events.methods.microaggregate_units import MicroaggregateUnits
from sfumato.events.methods.suppress_associations import SuppressAssociations
from sfumato.events.methods.suppress_items import SuppressItems
from sfumato.masking.base import Context, Step
from sfumato.masking.pipeline import protect
from sfumato.release import State
from sfumato.rng import Rng

TREE = {"food": {"sweet": ["0", "1", "2"], "salty": ["3", "4", "5"]}, "drink": {"cold": ["6", "7"], "hot": ["8"]}}
TAXONOMY = {"taxonomy": {"tree": TREE}}


def baskets(seed: int, *, rows: int = 150, units: int = 30, items: int = 9) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    item = [str(number) for number in draw.zipf(1.4, rows) % items]
    return pl.DataFrame({"buyer": draw.integers(0, units, rows), "product": item, "day": draw.integers(0, 9, rows)})


def dataset(frame: pl.DataFrame, hierarchy: Any = None) -> Data:
    product = Column.model_validate({"role": "quasi", "hierarchy": hierarchy})
    return Data.of(Table(frame=frame), Schema(columns={"product": product}, unit="buyer"))


def sets_of(frame: pl.DataFrame) -> list[frozenset[str]]:
    found: dict[int, set[str]] = {}
    for buyer, product in frame.select("buyer", "product").iter_rows():
        found.setdefault(buyer, set()).add(product)
    return [frozenset(products) for products in found.values()]


def supports(frame: pl.DataFrame, m: int) -> Counter[tuple[str, ...]]:
    """The number of units of every occurring set of at most m items, by enumeration."""
    counts: Counter[tuple[str, ...]] = Counter()
    for products in sets_of(frame):
        for size in range(1, m + 1):
            counts.update(combinations(sorted(products), size))
    return counts


def confidences(frame: pl.DataFrame, sensitive: list[str], m: int) -> Iterator[Fraction]:
    """The confidence of every rule from at most m items to a sensitive one, by enumeration."""
    units = sets_of(frame)
    for size in range(m + 1):
        for known in combinations(sorted(set().union(*units)), size):
            having = [products for products in units if products.issuperset(known)]
            for secret in set(sensitive) - set(known) if having else ():
                yield Fraction(sum(secret in products for products in having), len(having))


CASES = [pytest.param(seed, k, m, id=f"seed-{seed}-k-{k}-m-{m}") for seed, (k, m) in
         enumerate([(2, 1), (3, 2), (2, 3), (4, 2), (5, 3), (3, 4)])]  # fmt: skip


def run(step: Step, data: Data) -> pl.DataFrame:
    return step.apply(data, Context(rng=Rng(1))).table.frame


@pytest.mark.parametrize(("seed", "k", "m"), CASES)
def test_suppression_is_sound_and_maximal(seed: int, k: int, m: int) -> None:
    frame = baskets(seed, items=40)
    released = run(SuppressItems(item="product", k=k, m=m), dataset(frame))
    assert min(supports(released, m).values(), default=k) >= k
    kept = set(released["product"])
    for back in set(frame["product"]) - kept:
        with_it = frame.filter(pl.col("product").is_in([*kept, back]))
        assert min(supports(with_it, m).values()) < k, "an item was removed without need"
    assert released.height < frame.height


@pytest.mark.parametrize(("seed", "k", "m"), CASES)
def test_generalization_is_sound_and_truthful(seed: int, k: int, m: int) -> None:
    frame = baskets(seed)
    data = dataset(frame, TAXONOMY)
    change = GeneralizeItems(item="product", k=k, m=m).apply(data, Context(rng=Rng(1)))
    released = change.table.frame
    assert min(supports(released, m).values()) >= k
    paths = {line[0]: line for line in data.bound_hierarchy("product").rows()}
    assert change.rows is not None
    labels: dict[str, set[str]] = {}
    for row, label in zip(change.rows, released["product"], strict=True):
        assert label in paths[frame["product"][int(row)]], "a label that is not above the item"
        labels.setdefault(frame["product"][int(row)], set()).add(label)
    assert all(len(found) == 1 for found in labels.values()), "one item has two labels"
    assert released.select("buyer", "product").is_duplicated().sum() == 0


def test_generalization_keeps_what_may_stay() -> None:
    frame = pl.DataFrame({"buyer": [1, 2, 3, 4, 1, 2, 3, 4], "product": ["0", "0", "1", "2", "8", "8", "8", "8"]})
    released = run(GeneralizeItems(item="product", k=2, m=1), dataset(frame, TAXONOMY))
    assert sorted(set(released["product"])) == ["8", "sweet"]


@pytest.mark.parametrize("m", [1, 2, 3])
def test_independent_count_agrees_with_enumeration(m: int) -> None:
    for seed in range(3):
        frame, k = baskets(seed + 20, rows=90), seed + 2
        # how often somebody has a product is part of what is known
        times = pl.concat_str("product", pl.len().over("buyer", "product").cast(pl.String), separator=" times ")
        counts = supports(frame.with_columns(product=times), m)
        rare = {products for products, count in counts.items() if count < k}
        held = sets_of(frame.with_columns(product=times))
        found = sum(any(products.issuperset(one) for one in rare) for products in held)
        assert smallest_support(frame, unit="buyer", item="product", k=k, m=m) == (
            min(counts.values()), len(rare), found)  # fmt: skip


def test_a_broken_search_is_found_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: a search that counts sets of one item too few, or asks for one unit too few, must fail the verdict."""
    data, right = dataset(baskets(3, rows=300, items=40)), search.supported_items
    step = SuppressItems(item="product", k=4, m=2)
    assert protect(data, steps=[step], rng=Rng(1)).verdicts[0].state is State.HOLDS
    for change in ({"m": 1}, {"k": 3}):
        monkeypatch.setattr(
            "sfumato.events.methods.suppress_items.supported_items",
            lambda sets, change=change, **given: right(sets, **{**given, **change}),
        )
        [verdict] = protect(data, steps=[step], rng=Rng(1)).verdicts
        assert (verdict.model, verdict.state) == ("km-anonymity", State.FAILS)
        assert verdict.failing > 0


def test_a_later_step_that_undoes_it_fails_the_verdict() -> None:
    from sfumato.masking.methods.sample import Sample

    steps = [SuppressItems(item="product", k=4, m=2), Sample(fraction=0.4)]
    [verdict] = protect(dataset(baskets(3, rows=300, items=40)), steps=steps, rng=Rng(1)).verdicts
    assert verdict.state is State.FAILS


def test_without_the_unit_nothing_is_checked() -> None:
    verdict = SuppressItems.verify_release(
        {"parameters": {"item": "product", "k": 2, "m": 1}, "unit": "buyer"}, pl.DataFrame({"product": ["a"]})
    )[0]
    assert verdict.state is State.NOT_CHECKED
    assert SuppressItems.verify_release({"parameters": None}, pl.DataFrame())[0].state is State.NOT_CHECKED


@pytest.mark.parametrize(("seed", "rho", "m"), [(0, 0.5, 1), (1, 0.4, 2), (2, 0.7, 3), (3, 0.3, 2)])
def test_no_rule_reaches_rho(seed: int, rho: float, m: int) -> None:
    frame, sensitive = baskets(seed, rows=110), ["3", "5", "1"]
    step = SuppressAssociations(item="product", sensitive=tuple(sensitive), rho=rho, m=m)
    before = max(confidences(frame, sensitive, m))
    assert largest_confidence(frame, unit="buyer", item="product", sensitive=sensitive, m=m)[0] == before
    assert before >= Fraction(str(rho)), "the data needs no protection"
    result = protect(dataset(frame), steps=[step], rng=Rng(1))
    assert max(confidences(result.data.table.frame, sensitive, m), default=Fraction(0)) < Fraction(str(rho))
    assert result.verdicts[0].state is State.HOLDS


def test_a_rule_that_reaches_rho_fails_the_verdict() -> None:
    published = {"parameters": {"item": "product", "rho": 0.5, "m": 1, "sensitive": ["x"]}, "unit": "buyer"}
    frame = pl.DataFrame({"buyer": [1, 1, 2, 3, 4, 5], "product": ["a", "x", "a", "b", "b", "b"]})
    [verdict] = SuppressAssociations.verify_release(published, frame)
    assert (verdict.state, verdict.worst, verdict.failing) == (State.FAILS, 0.5, 2)
    harmless = frame.filter(pl.col("product") != "x")
    assert SuppressAssociations.verify_release(published, harmless)[0].state is State.HOLDS


@pytest.mark.parametrize("hierarchy", [None, TAXONOMY], ids=["flat", "taxonomy"])
def test_microaggregated_units_are_alike(hierarchy: Any) -> None:
    data = dataset(baskets(5, rows=900, units=60), hierarchy)
    result = protect(data, steps=[MicroaggregateUnits(item="product", k=4, columns=("day",))], rng=Rng(1))
    released = result.data.table.frame
    logs = Counter(
        tuple(sorted(rows.select("product", "day").iter_rows()))
        for _, rows in released.group_by("buyer")
    )  # fmt: skip
    assert min(logs.values()) >= 4
    assert len(logs) > 5, "everybody was made the same"
    assert result.verdicts[0].state is State.HOLDS
    one_more = released.with_columns(day=pl.when(pl.int_range(pl.len()) == 0).then(99.0).otherwise(pl.col("day")))
    [verdict] = MicroaggregateUnits.verify_release(result.steps[0].public(), one_more)
    assert verdict.state is State.FAILS


def test_groups_are_aggregated_alike_in_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    units, leaf = draw.integers(0, 40, 600), draw.integers(0, 9, 600).astype(np.int32)
    groups, day = draw.permutation(np.arange(40) // 5), np.where(draw.random(600) < 0.1, np.nan, draw.random(600))
    rows, items, [mean] = aggregation.common_events(units, groups, leaf, 9, [day])
    monkeypatch.setattr(aggregation, "_BATCH", 90)
    again, same, [means] = aggregation.common_events(units, groups, leaf, 9, [day])
    assert (rows.tolist(), items.tolist()) == (again.tolist(), same.tolist())
    np.testing.assert_allclose(mean, means)
    for group in range(8):
        own = np.flatnonzero(groups == group)
        logs = [sorted(zip(items[units[rows] == unit], mean[units[rows] == unit], strict=True)) for unit in own]
        assert all(log == logs[0] for log in logs)
        assert len(logs[0]) == min((units == unit).sum() for unit in own)
        for item, found in logs[0]:
            np.testing.assert_allclose(found, np.nanmean(day[(leaf == item) & (groups[units] == group)]))


def test_refusals_name_the_remedy() -> None:
    frame = baskets(1)
    bare = Data.of(Table(frame=frame), Schema(columns={}))
    with pytest.raises(BadParameter, match="unit"):
        run(SuppressItems(item="product", k=2, m=1), bare)
    holes = frame.with_columns(buyer=pl.when(pl.col("day") > 1).then(pl.col("buyer")))
    with pytest.raises(BadParameter, match="empty in"):
        run(SuppressItems(item="product", k=2, m=1), dataset(holes))
    for step in (GeneralizeItems(item="product", k=31, m=1), MicroaggregateUnits(item="product", k=31)):
        with pytest.raises(NotApplicable, match="smaller k"):
            run(step, dataset(frame))
    with pytest.raises(BadParameter, match="none of the"):
        run(SuppressAssociations(item="product", sensitive=("unheard",), rho=0.5, m=1), dataset(frame))
