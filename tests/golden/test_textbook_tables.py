"""Small tables whose protected versions and distances are printed in teaching material."""

from __future__ import annotations

import polars as pl
import pytest

from sfumato import datasets
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.masking.equivalence_classes import compress
from sfumato.masking.methods.generalize import Generalize
from sfumato.masking.metrics.height import Height
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.models.l_diversity import LDiversity
from sfumato.masking.models.t_closeness import TCloseness
from sfumato.masking.pipeline import protect
from sfumato.masking.search.lattice.level_range import LevelRange
from sfumato.masking.search.lattice.minimal import minimal_nodes
from sfumato.masking.search.lattice.space import LatticeSpace
from sfumato.rng import Rng


def salaries() -> Data:
    frame = pl.read_csv(datasets.place("salaries9"))
    group = [
        next(str(n) for n, rows in enumerate(((1, 3, 8), (4, 5, 6), (2, 7, 9))) if r in rows) for r in range(1, 10)
    ]
    hierarchy = {"file": str(datasets.place("conditions6"))}
    columns = {
        "group": Column(role=Role.QUASI),
        "salary": Column(role=Role.SENSITIVE),
        "condition": Column(role=Role.SENSITIVE, hierarchy=hierarchy),  # type: ignore[arg-type]
    }
    return Data.of(Table(frame=frame.with_columns(pl.Series("group", group))), Schema(columns=columns))


@pytest.mark.parametrize(
    ("column", "distance", "reference", "worst"),
    [
        ("salary", "ordered", "table", 1 / 6),
        ("condition", "hierarchical", "table", 8 / 27),
        ("condition", "hierarchical", "uniform", 5 / 18),
    ],
)
def test_distances_of_salaries9(column: str, distance: str, reference: str, worst: float) -> None:
    model = TCloseness.build({"t": 0.1, "column": column, "distance": distance, "reference": reference})
    assert model.check(salaries()).worst == pytest.approx(worst)
    assert round(worst, 3) in (0.167, 0.296, 0.278)


def census() -> Data:
    frame = pl.read_csv(datasets.place("census11"), schema_overrides={"zip": pl.String})
    columns = {name: Column(role=Role.QUASI) for name in ("ethnicity", "birth", "gender")}
    columns["zip"] = Column(role=Role.QUASI, hierarchy={"mask": "right"})  # type: ignore[arg-type]
    columns["condition"] = Column(role=Role.SENSITIVE)
    return Data.of(Table(frame=frame), Schema(columns=columns))


def census_space() -> LatticeSpace:
    table = compress(census())
    return LatticeSpace(table, (KAnonymity(k=2).bind(table),), Height(), limit=0)


@pytest.mark.parametrize(("levels", "holds"), [((0, 0, 0, 1), True), ((0, 0, 1, 0), False), ((0, 0, 1, 1), True)])
def test_levels_of_census11(levels: tuple[int, ...], holds: bool) -> None:
    assert census_space().evaluate(levels).meets is holds


def test_minimal_generalizations_of_census11() -> None:
    space = census_space()
    assert minimal_nodes(space, LevelRange(low=(0,) * 4, high=space.table.heights)) == [(0, 0, 0, 1)]
    change = protect(census(), steps=[Generalize(minimal=True)], models=[KAnonymity(k=2)], rng=Rng(1)).steps[0].change
    assert change.public["minimal"] == [{"ethnicity": 0, "birth": 0, "gender": 0, "zip": 1}]


ZIP4 = {"13053": "130**", "13068": "130**", "14853": "1485*", "14850": "1485*"}
ZIP3 = {"13053": "1305*", "13068": "1306*", "14853": "1485*", "14850": "1485*"}


def patients(zips: dict[str, str], ages: list[tuple[int, str]]) -> Data:
    frame = pl.read_csv(datasets.place("patients12"), schema_overrides={"zip": pl.String})
    band = [next(label for limit, label in ages if age < limit) for age in frame["age"].to_list()]
    frame = frame.with_columns(pl.col("zip").replace_strict(zips), pl.Series("age", band))
    roles = {"name": Role.IDENTIFIER, "zip": Role.QUASI, "age": Role.QUASI, "condition": Role.SENSITIVE}
    return Data.of(Table(frame=frame), Schema(columns={name: Column(role=role) for name, role in roles.items()}))


def test_four_anonymous_patients_give_cancer_away() -> None:
    data = patients(ZIP4, [(30, "<30"), (40, "3*"), (200, ">40")])
    assert KAnonymity(k=4).check(data).holds
    assert not KAnonymity(k=5).check(data).holds
    verdict = LDiversity(l=2).check(data)
    assert not verdict.holds
    assert verdict.worst == 1
    assert verdict.failing == 4
    lost = data.table.frame.filter((pl.col("zip") == "130**") & (pl.col("age") == "3*"))
    assert lost["condition"].unique().to_list() == ["Cancer"]


def test_three_diverse_patients() -> None:
    data = patients(ZIP3, [(40, "<40"), (200, ">40")])
    assert KAnonymity(k=4).check(data).holds
    verdict = LDiversity(l=3).check(data)
    assert verdict.holds
    assert verdict.worst == 3


def test_an_outsider_links_to_the_raw_table_only() -> None:
    """Peter (13068, 29) and Lucas (14850, 47) are unique in the raw table; in the 3-diverse one nobody is."""
    outside = pl.read_csv(datasets.place("outside7"), schema_overrides={"zip": pl.String})
    raw = pl.read_csv(datasets.place("patients12"), schema_overrides={"zip": pl.String})
    linked = outside.join(raw.group_by("zip", "age").len(), on=["zip", "age"])
    assert sorted(linked.filter(pl.col("len") == 1)["name"].to_list()) == ["Ben", "Lucas", "Peter"]
    shown = patients(ZIP3, [(40, "<40"), (200, ">40")]).table.frame.group_by("zip", "age").len()
    assert shown["len"].min() == 4
