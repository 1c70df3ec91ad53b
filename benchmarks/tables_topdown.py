"""TopDown tables of a synthetic country: time, memory, constraints, and errors by level.

python benchmarks/tables_topdown.py [--people 1000000] [--record]

The country has 5 states, 50 counties, 250 tracts, 750 block groups and 24,750 blocks, a quarter of them empty. A table
has 8 (kind of home) x 2 (adult) x 2 (origin) x 63 (race) = 2,016 cells. State totals are exact; facilities and flats of
a block are public; some kinds of home are for adults only. Shares and budget are those of the 2020 census.

Errors are mean absolute errors over all areas of a level. Noisy tables: the cells of each level's own measurement.
Least squares: all measurements combined, before integers are made.
"""

from __future__ import annotations

import argparse
import resource
import time
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from record import Figures

import sfumato.tables.topdown as algorithm
from sfumato.ledger import Ledger
from sfumato.ledger.charge import Charge
from sfumato.tables import AreaBound, Geography, HierarchicalTables, TopDownPlan
from sfumato.tables.hierarchical_gls import LevelResiduals, marginal_of, sum_children, tree_estimate
from sfumato.tables.topdown_plan import CENSUS_2020_LEVELS, CENSUS_2020_RHO

HOMES = ("flat", "prison", "youth prison", "nursing home", "other institution", "student home", "barracks", "shelter")
COLUMNS: dict[str, tuple[Any, ...]] = {
    "home": HOMES,
    "adult": ("no", "yes"),
    "origin": ("not Hispanic", "Hispanic"),
    "race": tuple(range(63)),
}
LEVELS = ("state", "county", "tract", "block group", "block")
SHAPE = (5, 10, 5, 3, 33)
ADULTS_ONLY = ("prison", "nursing home", "barracks")


def country(people: int, seed: int = 1) -> tuple[pl.DataFrame, Geography]:
    """People and areas. Blocks differ widely in size; races and origins cluster by tract."""
    random = np.random.default_rng(seed)
    blocks = int(np.prod(SHAPE))
    width, areas = blocks, {}
    for level, number in zip(LEVELS, SHAPE, strict=True):
        width //= number
        areas[level] = np.arange(blocks) // width
    size = np.where(random.random(blocks) < 0.25, 0, random.lognormal(0, 1, blocks))
    home = np.repeat(np.arange(blocks), random.multinomial(people, size / size.sum()))
    tract, tracts = areas["tract"][home], int(areas["tract"].max()) + 1
    common = np.sort(random.dirichlet(np.full(63, 0.15)))[::-1]
    shares = random.dirichlet(8 * common + 1e-3, tracts).cumsum(axis=1)
    race = np.minimum((shares[tract] < random.random(len(home))[:, None]).sum(axis=1), 62)
    facility = np.where(random.random(blocks) < 0.03, random.integers(1, 8, blocks), 0)
    kind = np.where(random.random(len(home)) < 0.6, facility[home], 0)
    only = np.isin(kind, [HOMES.index(name) for name in ADULTS_ONLY])
    adult = only | (random.random(len(home)) < 0.77)
    frame = pl.DataFrame(areas)
    for number, name in enumerate(HOMES):
        living = np.bincount(home[kind == number], minlength=blocks)
        frame = frame.with_columns(
            pl.Series(f"least {name}", np.zeros(blocks, dtype=int) if number == 0 else (living > 0).astype(int)),
            pl.Series(f"most {name}", -(-living // 4) * 10 if number == 0 else 2000 * (living > 0)),
        )
    table = pl.DataFrame(
        {
            "block": home,
            "home": pl.Series(HOMES).gather(kind),
            "adult": pl.Series(COLUMNS["adult"]).gather(adult.astype(int)),
            "origin": pl.Series(COLUMNS["origin"]).gather(
                (random.random(len(home)) < random.beta(0.5, 3, tracts)[tract]).astype(int)
            ),
            "race": race,
        }
    )
    return table, Geography(frame=frame, levels=LEVELS)


def plan() -> TopDownPlan:
    bounds = [AreaBound(where={"home": name}, at_least=f"least {name}", at_most=f"most {name}") for name in HOMES]
    return TopDownPlan(
        columns=COLUMNS,
        rho=CENSUS_2020_RHO,
        levels=CENSUS_2020_LEVELS,
        queries={
            (): Fraction(1, 10),
            ("home",): Fraction(1, 10),
            ("origin", "race"): Fraction(3, 10),
            tuple(COLUMNS): Fraction(5, 10),
        },
        exact_totals="state",
        impossible=({"home": ADULTS_ONLY, "adult": ("no",)},),
        bounds=tuple(bounds),
    )


def check(tables: HierarchicalTables, true: list[Any], places: Geography) -> dict[str, int]:
    """The number of violated constraints of each kind."""
    limits = algorithm.AreaLimits.of(tables.plan, places)
    heads = [counts.reshape(len(counts), len(HOMES), -1).sum(axis=2) for counts in tables.counts]
    pairs = zip(tables.counts[:-1], tables.counts[1:], places.parents, strict=True)
    return {
        "sums": sum(int((sum_children(low, parent, len(high)) != high).sum()) for high, low, parent in pairs),
        "negative": sum(int((counts < 0).sum()) for counts in tables.counts),
        "totals": int((tables.counts[1].sum(axis=1) != true[1].sum(axis=1)).sum()),
        "impossible": sum(int(counts[:, ~limits.possible].sum()) for counts in tables.counts),
        "bounds": sum(
            int(((h < low) | (h > high)).sum()) for h, low, high in zip(heads, limits.low, limits.high, strict=True)
        ),
    }


def errors(true: Any, shown: Any, shape: tuple[int, ...]) -> dict[str, float]:
    """Mean absolute errors of totals, of origin by race, and of all cells."""
    found = {}
    for name, away in (("total", (1, 2, 3, 4)), ("race", (1, 2)), ("cell", ())):
        a, b = (counts.reshape(-1, *shape).sum(axis=away) if away else counts for counts in (true, shown))
        found[name] = float(np.abs(a - b).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=1_000_000)
    people, places = country(parser.parse_args().people)
    wanted = plan()
    ledger = Ledger.open(":memory:")
    ledger.set_cap(wanted.loss, dataset="country")
    receipt = ledger.charge(Charge(loss=wanted.loss, unit="row", what="tables"), dataset="country", analyst="office")
    noisy: list[dict[tuple[int, ...], Any]] = []
    estimates: list[Any] = []

    class Recording(LevelResiduals):
        """Also keeps what was measured, for the comparison."""

        def __init__(self, shape: Any) -> None:
            super().__init__(shape)
            noisy.append({})

        def add(self, columns: tuple[int, ...], values: Any, *, variance: float) -> None:
            noisy[-1][columns] = values.astype(np.int32)
            super().add(columns, values, variance=variance)

    def recorded(levels: Any, parents: Any) -> Any:
        estimates.extend(tree_estimate(levels, parents))
        return estimates

    algorithm.LevelResiduals, algorithm.tree_estimate = Recording, recorded  # type: ignore[misc,assignment]
    start, began = time.process_time(), time.monotonic()
    tables = algorithm.topdown(people, places, wanted, receipt=receipt)
    seconds, wall = time.process_time() - start, time.monotonic() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    lowest = algorithm._true_counts(people, places, wanted)
    true = [sum_children(lowest, places.ancestors(n), len(c)) for n, c in enumerate(tables.counts)]
    cost = Figures(
        "tables_topdown",
        "cost",
        {"people": ",", "blocks": ",", "cells": ",", "seconds": ".0f", "wall": ".0f", "memory": ".1f", "violated": ",",
         "relaxed": ",", "unsolved": ","},
        {"cells": "cells of all blocks", "seconds": "CPU seconds", "memory": "GB (with the copies for the comparison)",
         "violated": "violated constraints", "relaxed": "relaxed areas", "unsolved": "parts not solved"},
    )  # fmt: skip
    violated = check(tables, true, places)
    cost.add(people=people.height, blocks=len(lowest), cells=lowest.size, seconds=seconds, wall=wall, memory=memory,
             violated=sum(violated.values()), relaxed=tables.relaxed, unsolved=tables.unsolved)  # fmt: skip
    by_level = Figures(
        "tables_topdown",
        "errors",
        {"level": "", "areas": ",", "what": "", "mean": ",.1f", "noisy": ".2f", "gls": ".2f", "topdown": ".2f"},
        {"what": "counts", "mean": "mean count", "noisy": "noisy tables", "gls": "least squares", "topdown": "TopDown"},
    )
    names = {"total": "total", "race": "origin × race", "cell": "all 2,016 cells"}
    queries = {"total": (), "race": (2, 3), "cell": (0, 1, 2, 3)}
    for number, level in enumerate(("country", *LEVELS)):
        shown = errors(true[number], tables.counts[number], wanted.shape)
        nodes = np.arange(len(true[number]))
        for what, columns in queries.items():
            away = tuple(1 + axis for axis in range(4) if axis not in columns)
            exact = true[number].reshape(-1, *wanted.shape).sum(axis=away) if away else true[number]
            exact = exact.reshape(len(nodes), *(wanted.shape[c] for c in columns))
            gls = 0.0
            for part in np.array_split(nodes, max(1, len(nodes) // 500)):
                guess = marginal_of(estimates[number], columns, wanted.shape, part)
                gls += float(np.abs(guess - exact[part]).sum()) / exact.size
            raw = float(np.abs(noisy[number][columns] - exact).mean())
            by_level.add(level=level, areas=len(nodes), what=names[what], mean=float(exact.mean()), noisy=raw, gls=gls,
                         topdown=shown[what])  # fmt: skip


if __name__ == "__main__":
    main()
