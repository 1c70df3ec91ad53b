"""What single masking methods do, by small examples."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter
from sfumato.masking.base import Context, Step
from sfumato.masking.methods._pram_matrix import TransitionMatrix, published_transitions
from sfumato.masking.methods.add_counterfeits import AddCounterfeits
from sfumato.masking.methods.categorize import Categorize
from sfumato.masking.methods.merge_rare import MergeRare
from sfumato.masking.methods.microaggregate import Microaggregate
from sfumato.masking.methods.pram import Pram
from sfumato.masking.methods.sample import Sample
from sfumato.masking.methods.shift_dates import ShiftDates
from sfumato.masking.methods.swap import Swap
from sfumato.masking.methods.synthesize import Synthesize
from sfumato.masking.methods.top_bottom_code import TopBottomCode
from sfumato.release import Change
from sfumato.rng import Rng


def data(roles: dict[str, Role] | None = None, unit: str | None = None, **values: Any) -> Data:
    chosen = {name: (roles or {}).get(name, Role.QUASI) for name in values}
    schema = Schema(columns={name: Column(role=role) for name, role in chosen.items()}, unit=unit)
    return Data.of(Table(frame=pl.DataFrame(values)), schema)


def run(step: Step, table: Data, seed: int = 1) -> Change:
    return step.apply(table, Context(rng=Rng(seed)))


def test_microaggregation_of_categories_follows_the_hierarchy() -> None:
    column = Column(role=Role.QUASI, hierarchy={"taxonomy": {"tree": {"left": ["a", "b"], "right": ["x", "y"]}}})
    table = Data.of(
        Table(frame=pl.DataFrame({"c": ["a", "b", "x", "y"], "n": [0.0, 0.0, 0.0, 0.0]})),
        Schema(columns={"c": column, "n": Column(role=Role.QUASI)}),
    )
    after = run(Microaggregate(k=2, categories="generalize"), table).table.frame["c"].to_list()
    assert after == ["left", "left", "right", "right"]


def test_microaggregation_blanks_rare_patterns_of_gaps() -> None:
    table = data(x=[1.0, 2.0, 3.0, None, 5.0], y=[1.0, 2.0, 3.0, 4.0, 5.0])
    change = run(Microaggregate(k=2), table)
    assert change.table.frame["y"][3] is None
    assert change.private["cells_blanked_for_rare_gaps"] == 1
    assert change.table.frame["x"].null_count() == 1


def test_fuzzy_microaggregation_goes_beyond_the_nearest_group() -> None:
    values = np.random.default_rng(0).normal(size=300)
    crisp = run(Microaggregate(k=3), data(x=values)).table.frame["x"]
    near = run(Microaggregate(k=3, fuzzy=1.01), data(x=values)).table.frame["x"]
    far = run(Microaggregate(k=3, fuzzy=3.0), data(x=values)).table.frame["x"]
    assert (near == crisp).mean() > 0.7 > (far == crisp).mean()
    assert set(far.unique()) <= set(crisp.unique())


def test_weighted_means() -> None:
    table = data(roles={"w": Role.WEIGHT}, x=[0.0, 1.0, 10.0, 11.0], w=[3.0, 1.0, 1.0, 1.0])
    after = run(Microaggregate(k=2, weighted=True), table).table.frame["x"].to_list()
    assert after == [0.25, 0.25, 10.5, 10.5]


def test_households_swap_as_a_whole() -> None:
    size = np.tile([1, 2, 3], 30)
    home = np.repeat(np.arange(90), size)
    table = data(roles={"home": Role.HOUSEHOLD, "who": Role.PLAIN}, home=home, town=home % 7, who=np.arange(len(home)))
    after = run(Swap(rate=0.5, household="home", columns=("town",)), table).table.frame
    assert after.group_by("home").agg(pl.col("town").n_unique())["town"].max() == 1
    assert (after["town"] != table.table.frame["town"]).mean() > 0.3
    assert after["town"].sort().equals(table.table.frame["town"].sort())


def test_members_of_households_agree_with_their_partners() -> None:
    """The table of the swapped column by strata stays exact, though the members of a household differ in them."""
    draw = np.random.default_rng(1)
    home = np.repeat(np.arange(120), 2)
    sex = draw.choice(["F", "M"], 240)
    roles = {"home": Role.HOUSEHOLD, "sex": Role.PLAIN}
    table = data(roles=roles, home=home, sex=sex, town=draw.integers(0, 9, 120)[home])
    after = run(Swap(rate=0.8, household="home", columns=("town",), strata=("sex",)), table).table.frame
    before = table.table.frame

    def crossed(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.group_by("sex", "town").len().sort("sex", "town")

    assert (after["town"] != before["town"]).mean() > 0.3
    assert crossed(after).equals(crossed(before))
    assert after.group_by("home").agg(pl.col("town").n_unique())["town"].max() == 1


def test_risky_records_are_swapped_first_and_within_strata() -> None:
    job = ["common"] * 90 + [f"rare {n}" for n in range(10)]
    table = data(roles={"s": Role.PLAIN, "i": Role.PLAIN}, job=job, s=["a", "b"] * 50, i=range(100))
    change = run(Swap(rate=0.2, target="risky", columns=("job",), strata=("s",)), table)
    after = change.table.frame
    assert (after["job"].tail(10) == "common").all()
    before = table.table.frame.group_by("s", "job").len().sort("s", "job")
    assert after.group_by("s", "job").len().sort("s", "job").equals(before)


def test_near_partners_are_alike() -> None:
    values = np.random.default_rng(0).permutation(1000)
    table = data(roles={"pay": Role.SENSITIVE}, x=values, pay=values * 1.0)
    near = run(Swap(rate=1.0, columns=("x",), near=("pay",)), table).table.frame
    far = run(Swap(rate=1.0, columns=("x",)), table).table.frame
    assert (near["x"] - near["pay"]).abs().mean() < 0.2 * (far["x"] - far["pay"]).abs().mean()


def test_top_and_bottom_by_weighted_percentage() -> None:
    table = data(roles={"w": Role.WEIGHT}, x=[1, 2, 3, 4], w=[1.0, 1.0, 1.0, 7.0])
    assert run(TopBottomCode(bottom_percent=20, columns=("x",)), table).table.frame["x"].to_list() == [3, 3, 3, 4]
    wide = data(x=list(range(100)))
    after = run(TopBottomCode(top_percent=5, bottom_percent=5), wide).table.frame["x"]
    assert (after.min(), after.max()) == (5, 94)
    mean = run(TopBottomCode(top_percent=10, replace_by="mean"), wide).table.frame["x"]
    assert mean.mean() == pytest.approx(49.5)
    assert mean.max() == pytest.approx(94.5)


def test_categorize_by_quantile_and_width() -> None:
    table = data(x=[0.0, 1.0, 2.0, 3.0, None])
    assert run(Categorize(bins=2, by="quantile"), table).table.frame["x"].to_list() == [
        "< 2",
        "< 2",
        ">= 2",
        ">= 2",
        None,
    ]
    assert run(Categorize(bins=3), table).table.frame["x"].to_list() == ["< 1", "[1, 2)", ">= 2", ">= 2", None]


def test_sampling_raises_weights_and_keeps_the_row_map() -> None:
    table = data(roles={"w": Role.WEIGHT}, x=range(1000), w=[2.0] * 1000)
    change = run(Sample(fraction=0.25), table)
    assert change.table.rows == 250
    assert change.rows is not None
    assert change.table.frame["x"].to_list() == change.rows.tolist()
    assert change.table.frame["w"].sum() == pytest.approx(2000)


def test_rare_categories_are_merged_until_the_rest_is_large() -> None:
    after = run(MergeRare(min_count=4), data(x=list("aaaaabbbbcd"))).table.frame["x"]
    assert after.to_list() == ["a"] * 5 + ["other"] * 6


def test_all_dates_of_a_person_move_alike() -> None:
    table = data(
        unit="who",
        roles={"who": Role.PLAIN},
        who=[1, 1, 2, None, None],
        a=[date(2020, 1, 1)] * 5,
        b=[date(2020, 3, 1), None, date(2020, 3, 1), date(2020, 3, 1), date(2020, 3, 1)],
    )
    shifts = set()
    for seed in range(20):
        after = run(ShiftDates(days=300, weekdays=True), table, seed).table.frame
        moved = (after["a"] - date(2020, 1, 1)).dt.total_days().to_list()
        assert moved[0] == moved[1]
        assert all(days % 7 == 0 and days != 0 for days in moved)
        assert (after["b"] - after["a"]).dt.total_days().to_list() == [60, None, 60, 60, 60]
        shifts.add(len(set(moved)))
    assert max(shifts) == 4


def test_joint_pram_makes_no_new_combination() -> None:
    table = data(a=["x", "x", "y", None] * 50, b=[True, False, True, True] * 50)
    change = run(Pram(keep=0.3, joint=True), table)
    before = set(table.table.frame.iter_rows())
    assert set(change.table.frame.iter_rows()) == before
    [(name, matrix)] = published_transitions(change.public).items()
    assert name == "a × b"
    assert matrix.categories == (("x", "false"), ("x", "true"), ("y", "true"))


def test_groups_of_categories_are_never_left() -> None:
    table = data(a=["n", "s", "e", "w", "z"] * 100)
    after = run(Pram(keep=0.2, groups={"a": (("n", "s"), ("e", "w"))}), table).table.frame
    seen = set(zip(table.table.frame["a"], after["a"], strict=True))
    assert seen == {
        ("n", "n"),
        ("n", "s"),
        ("s", "s"),
        ("s", "n"),
        ("e", "e"),
        ("e", "w"),
        ("w", "w"),
        ("w", "e"),
        ("z", "z"),
    }


@pytest.mark.parametrize("model", ["trees", "copula"])
def test_synthetic_rows_keep_dependence_and_empty_identifiers(model: str) -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=1500)
    table = data(
        roles={"name": Role.IDENTIFIER},
        name=[str(n) for n in range(1500)],
        x=x,
        y=x + 0.3 * draw.normal(size=1500),
        c=np.where(x > 0, "high", "low"),
    )
    change = run(Synthesize(model=model, rows=3000), table)
    made = change.table.frame
    assert made.height == 3000
    assert made["name"].null_count() == 3000
    assert change.rows is not None
    assert (change.rows == -1).all()
    assert made.select(pl.corr("x", "y")).item() > 0.9
    assert made.filter(pl.col("c") == "high")["x"].mean() > 0.4


def test_counterfeits_are_not_told_by_their_pseudonyms() -> None:
    codes = [f"{number:08x}" for number in np.random.default_rng(0).integers(0, 2**31, 500)]
    table = data(
        roles={"code": Role.IDENTIFIER, "home": Role.HOUSEHOLD}, code=codes, home=list(range(500)), age=list(range(500))
    )
    change = run(AddCounterfeits(fraction=0.5), table)
    assert change.rows is not None
    fake = change.table.frame.filter(pl.Series(change.rows == -1))
    assert fake.height == 250
    assert fake["code"].null_count() == 0
    assert fake["code"].str.contains("^[0-9a-f]{8}$").all()
    assert not set(fake["code"]) & set(codes)
    assert fake["home"].is_between(0, 499).all()


@pytest.mark.parametrize(
    ("values", "matrix"),
    [
        ([True] * 200, {"true": {"true": 0.5, "false": 0.5}, "false": {"false": 1.0}}),
        ([1] * 200, {"1": {"1": 0.5, "2": 0.5}, "2": {"2": 1.0}}),
        (["a"] * 200, {"a": {"a": 0.5, "b": 0.5}, "b": {"b": 1.0}}),
    ],
)
def test_a_matrix_may_lead_to_a_category_that_nobody_has_yet(values: list[Any], matrix: dict[str, Any]) -> None:
    table = data(x=values)
    after = run(Pram(matrix={"x": matrix}), table).table.frame["x"]
    assert after.dtype == table.table.frame["x"].dtype
    assert 0.3 < (after != table.table.frame["x"]).mean() < 0.7


def test_a_matrix_of_another_kind_is_refused() -> None:
    with pytest.raises(BadParameter, match="whole numbers"):
        run(Pram(matrix={"x": {"1": {"1": 0.5, "one": 0.5}, "one": {"one": 1.0}}}), data(x=[1, 1]))


def test_weighted_counts_before_pram() -> None:
    """Twice the weight is twice the count and twice its error; a weight of nothing counts nobody."""
    matrix = TransitionMatrix.generated(["no", "yes"], keep=0.8)
    masked = pl.Series(["yes"] * 38 + ["no"] * 62)
    plain, twice = matrix.estimate(masked), matrix.estimate(masked, np.full(100, 2.0))
    assert plain.counts == pytest.approx([70, 30])
    assert twice.counts == pytest.approx([140, 60])
    assert twice.standard_errors == pytest.approx(2 * plain.standard_errors)
    only_yes = matrix.estimate(masked, np.repeat([1.0, 0.0], [38, 62]))
    assert only_yes.counts.sum() == pytest.approx(38)


def test_counterfeits_stand_among_the_others() -> None:
    """500 of them in 1,000 places: the first half holds about half, by 12 standard deviations (7.9 each)."""
    change = run(AddCounterfeits(fraction=1.0), data(x=list(range(500))))
    assert change.rows is not None
    made_up = change.rows < 0
    assert made_up.sum() == 500
    assert 155 < made_up[:500].sum() < 345
    assert (np.diff(change.rows[~made_up]) == 1).all()
