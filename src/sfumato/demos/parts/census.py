"""Demo: census tables. Exact tables disclose people; TopDown tables add up and do not."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sfumato.arrays import Ints
from sfumato.demos.base import Demo, Say
from sfumato.dp.loss import PrivacyMeasure
from sfumato.ledger.charge import Charge
from sfumato.ledger.ledger import Ledger
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng
from sfumato.tables.geography import Geography
from sfumato.tables.hierarchical_tables import HierarchicalTables
from sfumato.tables.reconstruction import PublishedStatistic, reconstruct
from sfumato.tables.topdown import topdown
from sfumato.tables.topdown_plan import TopDownPlan

COLUMNS: dict[str, tuple[str, ...]] = {
    "origin": ("here", "elsewhere"),
    "sex": ("F", "M"),
    "age": ("0-17", "18-29", "30-44", "45-64", "65-79", "80+"),
}
_RHO = Fraction(1, 2)
_SMALLER = (Fraction(1, 2000), Fraction(1, 50))
"""Budgets at which the demo also looks at small towns."""
_LEVELS = ("county", "town", "block")


class CensusDemo(Demo):
    """Census tables of a synthetic country: reconstruction from exact tables, swapping, and TopDown.

    The demo reconstructs the seven people of a published example from their block's tables, then publishes tables of a
    country in three ways and compares what each says about people who are alone in their block with their origin, sex
    and age. It also shows what becomes of small towns.
    """

    reference = (
        "Abowd et al. (2022), doi:10.1162/99608f92.529e3cb9; Garfinkel et al. (2018), doi:10.1145/3291276.3295691"
    )

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        found = reconstruct(_block(), people=7, attributes=_ATTRIBUTES, never=[_MARRIED_MINOR])
        say(
            "\n[bold]1. Seven people, and the tables of their block[/bold]: counts, means and medians of age by sex, "
            "race and marriage, every cell of fewer than three people suppressed. A constraint solver finds "
            f"[bold red]{len(found.solutions)}[/bold red] list of people that fits: "
            + ", ".join("".join(map(str, person)) for person in found.solutions[0])
            + "."
        )
        random = Rng(self.seed).child("country").generator
        people, places = _country(random)
        plan = TopDownPlan(
            columns=COLUMNS,
            rho=_RHO,
            levels=(Fraction(1, 10), Fraction(2, 10), Fraction(3, 10), Fraction(4, 10)),
            queries={(): Fraction(1, 5), ("origin", "sex"): Fraction(1, 5), tuple(COLUMNS): Fraction(3, 5)},
            exact_totals="county",
        )
        tables = _published(people, places, plan, progress)
        true = _counts(people, places)
        swapped = _counts(_swapped(people, random), places)
        shown = {"exact": true, "swapped": swapped, "topdown": tables.counts[-1]}
        figures = {name: _disclosed(true, counts) for name, counts in shown.items()}
        epsilon = float(plan.loss.to(PrivacyMeasure.RHO).at(Fraction(1, 10**6)).size)
        say(
            f"\n[bold]2. A country of {people.height:,} people in {len(true)} blocks.[/bold] A person who is alone in "
            "the block with their origin, sex and age is disclosed by a table that shows one such person. Of the "
            "people whom the block tables show as alone, that is true for\n"
            f"   exact tables          [bold red]{figures['exact']['precision']:.0%}[/bold red], all of them\n"
            f"   5 % of people swapped [bold red]{figures['swapped']['precision']:.0%}[/bold red]\n"
            f"   TopDown               [bold green]{figures['topdown']['precision']:.0%}[/bold green] "
            f"(ρ = {float(_RHO):g}, which is ε = {epsilon:.1f} at δ = 1e-6)"
        )
        towns = _towns(people, tables, _RHO)
        for rho in _SMALLER:
            towns += _towns(people, _published(people, places, replace(plan, rho=rho), progress), rho)
        small = [town for town in towns if town["true"] <= 40 and town["rho"] == _text(_RHO)]
        gone = {_text(rho): sum(town["published"] == 0 and town["true"] <= 40 and town["rho"] == _text(rho)
                                for town in towns) for rho in (*_SMALLER, _RHO)}  # fmt: skip
        errors = _errors(people, tables)
        say(
            "\n[bold]3. Do small towns disappear?[/bold] "
            f"Of {len(small)} towns with at most 40 people "
            + ", ".join(f"{number} at {rho}" for rho, number in gone.items())
            + f" have no people in the published tables. Totals of counties are exact; with {_text(_RHO)} the mean "
            "error of a town is "
            f"{errors['town']:.1f} people, of a block {errors['block']:.1f}. All tables add up, none is negative."
        )
        picture = folder / "towns.svg"
        picture.write_text(_draw(towns), encoding="utf-8")
        say(f"\nThe chart:  {picture.resolve()}\n")
        return {
            "solutions": len(found.solutions), "people": people.height, "disclosed": figures, "towns": towns,
            "small_towns": len(small), "small_towns_gone": gone, "errors": errors, "relaxed": tables.relaxed,
            "picture": str(picture),
        }  # fmt: skip


_ATTRIBUTES = {"sex": ("F", "M"), "race": ("B", "W"), "married": ("S", "M")}
_MARRIED_MINOR = PublishedStatistic(where={"married": "M"}, high=17, count=0)


def _block() -> list[PublishedStatistic]:
    """The published tables of Garfinkel, Abowd and Martindale (2018)."""
    few = [{"race": "B", "sex": "M"}, {"race": "W", "sex": "M"}, {"race": "W", "sex": "F"}]
    return [
        PublishedStatistic(count=7, median=30, mean=38),
        PublishedStatistic(where={"sex": "F"}, count=4, median=30, mean="33.5"),
        PublishedStatistic(where={"sex": "M"}, count=3, median=30, mean=44),
        PublishedStatistic(where={"race": "B"}, count=4, median=51, mean="48.5"),
        PublishedStatistic(where={"race": "W"}, count=3, median=24, mean=24),
        PublishedStatistic(where={"married": "S"}, low=18, at_most=2),
        PublishedStatistic(where={"married": "M"}, low=18, count=4, median=51, mean=54),
        PublishedStatistic(where={"race": "B", "sex": "F"}, count=3, median=36, mean="36.7"),
        *(PublishedStatistic(where=cell, at_most=2) for cell in few),
        PublishedStatistic(high=4, at_most=2),
        PublishedStatistic(high=17, at_most=2),
        PublishedStatistic(low=64, at_most=2),
    ]


def _country(random: np.random.Generator) -> tuple[pl.DataFrame, Geography]:
    """Sixty towns of very different sizes in four counties, with blocks of about 30 people."""
    sizes = np.round(np.exp(random.uniform(np.log(8), np.log(1200), 60))).astype(int)
    blocks = np.maximum(1, sizes // 30)
    town = np.repeat(np.arange(60), blocks)
    places = pl.DataFrame({"county": [f"county {t % 4}" for t in town], "town": [f"town {t:02d}" for t in town],
                           "block": [f"block {n:04d}" for n in range(len(town))]})  # fmt: skip
    first = np.cumsum(blocks) - blocks
    home = np.concatenate([first[t] + random.integers(blocks[t], size=sizes[t]) for t in range(60)])
    rows = len(home)
    people = places[home].with_columns(
        origin=pl.Series(random.choice(COLUMNS["origin"], rows, p=[0.93, 0.07])),
        sex=pl.Series(random.choice(COLUMNS["sex"], rows)),
        age=pl.Series(random.choice(COLUMNS["age"], rows, p=[0.2, 0.17, 0.22, 0.25, 0.12, 0.04])),
    )
    return people, Geography(frame=places, levels=_LEVELS)


def _swapped(people: pl.DataFrame, random: np.random.Generator) -> pl.DataFrame:
    """The same people; one in twenty has changed home with another one of the county."""
    block = people["block"].to_numpy().copy()
    county = people["county"].to_numpy()
    for name in np.unique(county):
        rows = np.flatnonzero(county == name)
        movers = random.choice(rows, size=2 * (len(rows) // 40), replace=False)
        block[movers] = block[np.roll(movers, len(movers) // 2)]
    return people.with_columns(block=pl.Series(block))


def _counts(people: pl.DataFrame, places: Geography) -> Ints:
    cell = np.zeros(people.height, dtype=np.int64)
    for name, values in COLUMNS.items():
        codes = people[name].replace_strict(list(values), list(range(len(values))), return_dtype=pl.Int64)
        cell = cell * len(values) + codes.to_numpy()
    size = int(np.prod([len(values) for values in COLUMNS.values()]))
    counts = np.bincount(places.place(people) * size + cell, minlength=len(places.frame) * size)
    return counts.reshape(-1, size)


def _disclosed(true: Ints, shown: Ints) -> dict[str, float]:
    """How many cells the tables show as one person, and the share of these that is one person."""
    claims = shown == 1
    return {"claims": int(claims.sum()), "precision": float((true[claims] == 1).mean()) if claims.any() else 0.0}


def _totals(people: pl.DataFrame, tables: HierarchicalTables, level: str) -> pl.DataFrame:
    true = people.group_by(level).len("true")
    published = tables.table(level).rename({"count": "published"})
    return published.join(true, on=level, how="left").with_columns(pl.col("true").fill_null(0).cast(pl.Int64))


def _published(people: pl.DataFrame, places: Geography, plan: TopDownPlan, progress: Progress) -> HierarchicalTables:
    ledger = Ledger.unkept()
    ledger.set_cap(plan.loss, dataset="census")
    receipt = ledger.charge(Charge(loss=plan.loss, unit="row", what="tables"), dataset="census", analyst="office")
    return topdown(people, places, plan, receipt=receipt, progress=progress)


def _towns(people: pl.DataFrame, tables: HierarchicalTables, rho: Fraction) -> list[dict[str, Any]]:
    return _totals(people, tables, "town").sort("town").with_columns(rho=pl.lit(_text(rho))).to_dicts()


def _text(rho: Fraction) -> str:
    return f"ρ = {float(rho):g}"


def _errors(people: pl.DataFrame, tables: HierarchicalTables) -> dict[str, float]:
    """Mean absolute error of the number of people by level."""
    found = {}
    for level in _LEVELS:
        table = _totals(people, tables, level)
        found[level] = float(np.abs(table["true"].to_numpy() - table["published"].to_numpy()).mean())
    return found


def _draw(towns: list[dict[str, Any]]) -> str:
    """Published against true numbers of people, as SVG."""
    from sfumato.drawing import Lines, Panels, Place

    ticks = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    panels = tuple(
        Lines(
            rows=tuple(Place(x=town["true"], y=town["published"]) for town in towns if town["rho"] == _text(rho)),
            title=_text(rho), across="people of a town", up="people in the published tables", joined=False,
            x_ticks=ticks, y_ticks=ticks, x_kind="symlog", y_kind="symlog", diagonal=True,
        )
        for rho in (*_SMALLER, _RHO)
    )  # fmt: skip
    return Panels(charts=panels).draw(320 * len(panels)).file(title="Published against true numbers of people")
