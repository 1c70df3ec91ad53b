"""Private synthesis of people in households: both levels agree, and a household is the unit of privacy."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.dp import approximate
from sfumato.errors import BadParameter, SfumatoError
from sfumato.ledger import Ledger
from sfumato.masking.base import Context
from sfumato.rng import Rng
from sfumato.synthesis import PrivateSynthesis
from sfumato.synthesis.column_domain import ColumnCells
from sfumato.synthesis.junction_tree import JunctionTree
from sfumato.synthesis.private_counts import PrivateCounts

DOMAINS: dict[str, Any] = {
    "region": {"values": ["north", "south"]},
    "rooms": {"low": 1, "high": 9},
    "age": {"low": 0, "high": 99},
}
HOUSEHOLDS: dict[str, Any] = {"columns": ["region", "rooms"], "max_members": 5, "size": "people"}
SHARES = [0.35, 0.3, 0.15, 0.12, 0.08]


def town(households: int = 2500) -> pl.DataFrame:
    random = np.random.default_rng(1)
    size = random.choice([1, 2, 3, 4, 5], households, p=SHARES)
    of = np.repeat(np.arange(households), size)
    age = np.where(size[of] > 3, random.integers(0, 50, len(of)), random.integers(20, 90, len(of)))
    return pl.DataFrame(
        {
            "home": [f"home {n}" for n in of],
            "age": age,
            "region": random.choice(["north", "south"], households)[of],
            "rooms": np.clip(size + random.integers(0, 3, households), 1, 9)[of],
            "people": size[of],
            "works": (age >= 18) & (age < 66),
        }
    )


def data(frame: pl.DataFrame) -> Data:
    return Data.of(Table(frame=frame), Schema.of(frame, household="home"))


def step(**changes: Any) -> PrivateSynthesis:
    wanted = {"epsilon": 4, "delta": 1e-6, "domains": DOMAINS, "households": HOUSEHOLDS, **changes}
    return PrivateSynthesis.build(wanted)


@pytest.mark.parametrize("mechanism", ["mst", "adaptive"])
def test_both_levels_of_the_release_agree(mechanism: str) -> None:
    original = town()
    made = step(mechanism=mechanism).apply(data(original), Context(rng=Rng(1)))
    frame = made.table.frame
    assert frame.schema == original.schema
    homes = frame.group_by("home").agg(
        pl.col("region", "rooms", "people").n_unique(), pl.len(), size=pl.first("people")
    )
    assert homes.select(pl.max("region", "rooms", "people")).row(0) == (1, 1, 1)
    assert (homes["len"] == homes["size"]).all()
    assert abs(homes.height - 2500) < 60
    shares = homes["size"].value_counts(sort=False).sort("size")["count"] / homes.height
    np.testing.assert_allclose(shares, SHARES, atol=0.04)
    large = frame.group_by(pl.col("people") > 3).agg(pl.mean("age")).sort("people")["age"]
    assert large[1] + 15 < large[0], "members depend on their household"
    assert made.public["guarantee"]["unit"] == "home"
    assert made.public["guarantee"]["max_rows"] == 5
    assert {"region", "rooms", "people"} == {n for one in made.public["household_marginals"] for n in one["columns"]}


def test_constraints_hold_and_leave_the_sizes_as_they_are() -> None:
    """Without a redraw of single members, large households would be lost: 156 of 2500 instead of 200."""
    frame = step(constraints=["age >= 18 OR NOT works", "rooms < 9 OR region = 'south'"]).apply(
        data(town()), Context(rng=Rng(1))
    ).table.frame  # fmt: skip
    assert not frame.filter((pl.col("age") < 18) & pl.col("works")).height
    assert not frame.filter((pl.col("rooms") == 9) & (pl.col("region") == "north")).height
    sizes = frame.group_by("home").len()["len"]
    assert (sizes == 5).sum() / len(sizes) == pytest.approx(0.08, abs=0.015)
    assert frame.group_by("home").agg((pl.len() == pl.first("people")).alias("agree"))["agree"].all()


def test_no_table_moves_by_more_than_its_reach_when_a_household_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables that are counted for a town and for the same town without one household of five."""
    seen: list[tuple[Counter[Any], int]] = []
    build = PrivateCounts.__init__

    def record(self: PrivateCounts, codes: Any, shape: Any, *, max_contribution: int, receipt: Any) -> None:
        seen.append((Counter(zip(*(column.tolist() for column in codes), strict=True)), max_contribution))
        build(self, codes, shape, max_contribution=max_contribution, receipt=receipt)

    monkeypatch.setattr(PrivateCounts, "__init__", record)
    monkeypatch.setattr(ColumnCells, "coarser", lambda cells, _: cells)  # the same cells, whatever the noise was
    frame = town(300)
    leaves = frame.filter(pl.col("people") == 5)["home"][0]
    for table in (frame, frame.filter(pl.col("home") != leaves)):
        step(mechanism="mst").fit_households(data(table))
    # Of each level: the number of rows, the table, then the same in merged cells.
    with_it, without_it = [seen[n] for n in (0, 1, 3, 4)], [seen[n] for n in (6, 7, 9, 10)]
    moved = [(a - b).total() + (b - a).total() for (a, _), (b, _) in zip(with_it, without_it, strict=True)]
    assert moved == [1, 1, 5, 5]
    assert [max_contribution for _, max_contribution in with_it] == [1, 1, 5, 5]


def test_members_beyond_the_bound_are_left_out() -> None:
    frame = town(400)
    model = step(households={**HOUSEHOLDS, "max_members": 3}).fit_households(data(frame))
    assert model.sample(random=np.random.default_rng(1))["people"].max() <= 3
    assert model.guarantee.max_rows == 3


def test_rows_are_drawn_given_columns_of_the_root() -> None:
    shape, random = (2, 3, 4), np.random.default_rng(2)
    joint = random.dirichlet(np.ones(24)).reshape(shape)
    tree = JunctionTree(shape, [(0, 2), (1, 2)], root=(0, 1))
    tree.fit({(0, 2): joint.sum(axis=1), (1, 2): joint.sum(axis=0), (0, 1): joint.sum(axis=2)}, sweeps=100)
    whole = tree.sample(200_000, random)
    given = {0: np.repeat(np.int32([0, 1]), 30_000), 1: np.tile(np.int32([0, 1, 2]), 20_000)}
    drawn = tree.sample(60_000, random, given=given)
    for first in range(2):
        for second in range(3):
            expected = np.bincount(whole[2][(whole[0] == first) & (whole[1] == second)], minlength=4)
            got = np.bincount(drawn[2][(given[0] == first) & (given[1] == second)], minlength=4)
            np.testing.assert_allclose(got / got.sum(), expected / expected.sum(), atol=0.02)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"households": {**HOUSEHOLDS, "columns": ["region", "nothing"]}}, "nothing"),
        ({"households": {**HOUSEHOLDS, "columns": ["region", "home"]}}, "not synthesized"),
        ({"households": {**HOUSEHOLDS, "columns": ["region", "people"]}}, "needs a declared domain"),
        ({"households": HOUSEHOLDS, "domains": {k: DOMAINS[k] for k in ("age", "rooms")}}, "needs a declared domain"),
        ({"domains": {**DOMAINS, "region": {"values": [str(n) for n in range(20_000)]}}}, "cells"),
    ],
)
def test_households_without_a_sound_model_are_refused_before_the_charge(changes: dict[str, Any], words: str) -> None:
    ledger = Ledger.open(":memory:")
    ledger.set_cap(approximate(5, Fraction(1, 10**6)), dataset="table")
    with pytest.raises(SfumatoError, match=words):
        step(**changes).fit_households(data(town(20)), ledger=ledger, dataset="table")
    assert [entry.kind for entry in ledger.entries()] == ["cap"]


def test_households_need_a_column_that_tells_them_apart() -> None:
    frame = town(20)
    with pytest.raises(BadParameter, match="tells households apart"):
        step().fit_households(Data.of(Table(frame=frame), Schema.of(frame, identifier="home")))
    with pytest.raises(BadParameter, match="fit_households"):
        step().fit(data(frame))
    for more in ({"rows": 10}, {"max_rows": 2}):
        with pytest.raises(BadParameter, match="max_members"):
            step(**more)
