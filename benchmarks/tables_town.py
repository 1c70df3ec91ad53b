"""Reconstruction and re-identification of a synthetic town of 10,000 people from its census tables.

python benchmarks/tables_town.py [--record]

People of blocks of about 30 (sex, age in years, race, origin) are reconstructed from tables like those of the 2010
census: by block race x origin, sex x 23 age groups x race, sex x age groups x origin, sex x years of age below 20; by
tract sex x years of age x race, and sex x years of age x origin. An attacker has an outside file of 60 of 100 people
with block, sex and age, and takes race and origin from the reconstructed person with the same block and sex and the
nearest age, at most a year apart. The tables come from the exact data, from data in which households changed their
homes with others of the same size, the riskiest first (the 2010 method), and from TopDown. With `--record` the figures
are also drawn to docs/images/town.svg.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from area_reconstruction import PublishedCounts, reconstruct_areas
from record import RECORD, Figures

from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.ledger import Ledger
from sfumato.ledger.charge import Charge
from sfumato.masking.base import Context
from sfumato.masking.methods.swap import Swap
from sfumato.rng import Rng
from sfumato.tables import Geography, TopDownPlan
from sfumato.tables.topdown import topdown

PEOPLE, BLOCKS, TRACTS = 10_000, 333, 9
SHAPE = (2, 100, 5, 2)
"""Sex, age, race, origin."""
GROUPS = np.searchsorted([5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85],
                         np.arange(100), side="right")  # fmt: skip


def town(seed: int = 1) -> pl.DataFrame:
    """Households of couples, families and single people; race and origin run in households and blocks."""
    random = np.random.default_rng(seed)
    shares = random.dirichlet([4, 1, 0.6, 0.3, 0.2], TRACTS)
    local = np.array([random.dirichlet(6 * shares[b * TRACTS // BLOCKS] + 0.02) for b in range(BLOCKS)])
    spanish = random.beta(0.6, 4, BLOCKS)
    weight = random.lognormal(0, 0.6, BLOCKS)
    rows: list[tuple[int, ...]] = []
    while len(rows) < PEOPLE:
        home = int(random.choice(BLOCKS, p=weight / weight.sum()))
        race, origin, oldest = random.choice(5, p=local[home]), random.random() < spanish[home], random.integers(20, 95)
        ages = [oldest]
        if random.random() < 0.6:
            ages.append(int(np.clip(oldest + random.normal(0, 4), 18, 99)))
            if oldest < 55:
                ages += [int(a) for a in np.clip(oldest - random.integers(20, 40, random.poisson(1.6)), 0, 99)]
        number = len(rows)
        for age in ages:
            own = race if random.random() < 0.93 else int(random.choice(5, p=local[home]))
            rows.append((number, home, int(random.integers(2)), int(age), int(own), int(origin)))
    frame = pl.DataFrame(rows[:PEOPLE], schema=["household", "block", "sex", "age", "race", "origin"], orient="row")
    return frame.with_columns(tract=pl.col("block") * TRACTS // BLOCKS)


def counts_of(people: pl.DataFrame) -> Any:
    cell = np.ravel_multi_index([people[name].to_numpy() for name in ("sex", "age", "race", "origin")], SHAPE)
    size = int(np.prod(SHAPE))
    return np.bincount(people["block"].to_numpy() * size + cell, minlength=BLOCKS * size).reshape(BLOCKS, size)


def published(counts: Any) -> list[PublishedCounts]:
    """The tables, from numbers of people by block and combination."""
    sex, age, race, origin = np.indices(SHAPE).reshape(4, -1)
    block, tract = np.arange(BLOCKS), np.arange(BLOCKS) * TRACTS // BLOCKS
    cells = [
        (block, race * 2 + origin),
        (block, (sex * 23 + GROUPS[age]) * 5 + race),
        (block, (sex * 23 + GROUPS[age]) * 2 + origin),
        (block, np.where(age < 20, sex * 20 + age, -1)),
        (tract, (sex * 100 + age) * 5 + race),
        (tract, (sex * 100 + age) * 2 + origin),
    ]
    return [PublishedCounts.tabulate(counts, area=area, cell=cell) for area, cell in cells]


def swapped(people: pl.DataFrame, rate: float) -> pl.DataFrame:
    """The riskiest households change their homes with others of the same size."""
    names = ("block", "sex", "age", "race", "origin")
    schema = Schema(columns={name: Column(role="quasi") for name in names})
    data = Data.of(Table(frame=people), schema)
    step = Swap(rate=rate, columns=("block",), household="household", target="risky", keys=("block", "race", "origin"))
    frame = step.apply(data, Context(rng=Rng(3))).table.frame
    return frame.with_columns(tract=pl.col("block") * TRACTS // BLOCKS)


def private(people: pl.DataFrame, rho: Fraction) -> Any:
    """TopDown counts of all blocks."""
    places = pl.DataFrame({"tract": np.arange(BLOCKS) * TRACTS // BLOCKS, "block": np.arange(BLOCKS)})
    full = ("sex", "age", "race", "origin")
    plan = TopDownPlan(
        columns={"race": tuple(range(5)), "origin": (0, 1), "sex": (0, 1), "age": tuple(range(100))},
        rho=rho,
        levels=(Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)),
        queries={(): Fraction(1, 10), ("race", "origin"): Fraction(4, 10), full: Fraction(5, 10)},
    )
    ledger = Ledger.open(":memory:")
    ledger.set_cap(plan.loss, dataset="town")
    receipt = ledger.charge(Charge(loss=plan.loss, unit="row", what="tables"), dataset="town", analyst="office")
    tables = topdown(people, Geography(frame=places, levels=("tract", "block")), plan, receipt=receipt)
    return tables.counts[-1].reshape(BLOCKS, 5, 2, 2, 100).transpose(0, 3, 4, 1, 2).reshape(BLOCKS, -1)


def people_of(counts: Any) -> Any:
    """One line per person: block, sex, age, race, origin."""
    block, cell = np.nonzero(counts)
    times = counts[block, cell]
    return np.column_stack([np.repeat(block, times), *np.unravel_index(np.repeat(cell, times), SHAPE)])


def reidentified(people: pl.DataFrame, rebuilt: Any, seed: int = 5) -> dict[str, float]:
    """Claims about the race and origin of people of the outside file, and how many are right."""
    random = np.random.default_rng(seed)
    rows = people.select("block", "sex", "age", "race", "origin").to_numpy()
    outside = rows[random.random(len(rows)) < 0.6]
    free: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for block, sex, age, race, origin in rebuilt.tolist():
        free.setdefault((block, sex), []).append((age, race, origin))
    mode = {
        key[0]: tuple(part.group_by("race", "origin").len().sort("len", "race", "origin").row(-1)[:2])
        for key, part in people.group_by("block")
    }
    claims = right = rare_claims = rare_right = 0
    for block, sex, age, race, origin in outside.tolist():
        near = free.get((block, sex), [])
        best = min(near, key=lambda one: (abs(one[0] - age), one), default=None)
        if best is None or abs(best[0] - age) > 1:
            continue
        near.remove(best)
        rare = (race, origin) != mode[block]
        claims, right = claims + 1, right + (best[1:] == (race, origin))
        rare_claims, rare_right = rare_claims + rare, rare_right + (rare and best[1:] == (race, origin))
    return {
        "claims": claims / len(outside),
        "right": right / len(outside),
        "precision": right / max(1, claims),
        "rare": rare_right / max(1, rare_claims),
    }


def main() -> None:
    people = town()
    true = counts_of(people)
    table = Figures(
        "tables_town",
        "attack",
        {"tables": "", "rebuilt": ".0%", "exact": ".1%", "near": ".1%", "claims": ".0%", "right": ".0%",
         "precision": ".0%", "rare": ".0%", "seconds": ".0f"},
        {"tables": "tables from", "rebuilt": "people reconstructed", "exact": "all values right",
         "near": "up to a year of age", "claims": "claims about the outside file", "right": "right claims",
         "precision": "right among claims", "rare": "of those, not the block's commonest",
         "seconds": "CPU seconds"},
    )  # fmt: skip
    sources = {
        "exact data": true,
        "5 % of households swapped": counts_of(swapped(people, 0.05)),
        "20 % of households swapped": counts_of(swapped(people, 0.2)),
        "TopDown, ρ = 10": private(people, Fraction(10)),
        "TopDown, ρ = 1": private(people, Fraction(1)),
        "TopDown, ρ = 1/10": private(people, Fraction(1, 10)),
    }
    for name, counts in sources.items():
        start = time.process_time()
        found = reconstruct_areas(published(counts))
        rebuilt = people_of(found.counts)
        exact = np.minimum(found.counts, true).sum() / PEOPLE
        table.add(tables=name, rebuilt=len(rebuilt) / PEOPLE, exact=exact, near=within_a_year(found.counts, true),
                  seconds=time.process_time() - start, **reidentified(people, rebuilt))  # fmt: skip

    modal = people.group_by("block", "race", "origin").len().group_by("block").agg(pl.col("len").max())["len"].sum()
    guess = modal / PEOPLE
    table.add(tables="a guess: the block's commonest", claims=1.0, right=guess, precision=guess, rare=0.0)
    if RECORD:
        draw(table.rows, Path(__file__).parents[1] / "docs" / "images" / "town.svg")


def draw(rows: list[list[Any]], path: Path) -> None:
    """Shares of people that are reconstructed and re-identified, by source of the tables."""
    from sfumato.drawing import BarChart, BarRow

    names = {2: "reconstructed exactly", 3: "reconstructed up to a year of age", 7: "rare race or origin re-identified"}
    bars = tuple(
        BarRow(label=row[0], value=row[place], series=name)
        for row in rows
        for place, name in names.items()
        if row[place] is not None
    )
    chart = BarChart(rows=bars, percent=True, title="share")
    path.write_text(chart.draw(720).file(title="People reconstructed, by source of the tables"), encoding="utf-8")


def within_a_year(found: Any, true: Any) -> float:
    """Share of people with a reconstructed partner that has the same values and an age at most a year apart."""
    left, right = (counts.reshape(BLOCKS, *SHAPE).copy() for counts in (found, true))
    pairs = 0
    for shift in (0, -1, 1):
        for age in range(max(0, -shift), min(100, 100 - shift)):
            both = np.minimum(left[:, :, age + shift], right[:, :, age])
            left[:, :, age + shift] -= both
            right[:, :, age] -= both
            pairs += int(both.sum())
    return pairs / PEOPLE


if __name__ == "__main__":
    main()
