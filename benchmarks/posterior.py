"""One adversary who multiplies all evidence against attacks that use one kind of evidence each, on real files.

python benchmarks/posterior.py [rows] [attack[=main parameter] ...]

For each file and release the share of people found by `posterior-linkage` stands beside that of each other attack, in
percent. All attackers know all columns of everybody. In the second part none knows the masking steps. The last line
counts the releases on which an attack found more than the scorer by two standard errors of the difference: an attack
with none is a candidate for deletion.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.attacks import Attack, AttackScenario, Outcome, evaluate_attack
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.errors import NotApplicable
from sfumato.masking.base import Step
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.masking.pipeline import protect
from sfumato.registry import registry
from sfumato.release import Release
from sfumato.rng import Rng

FILES = Path(__file__).parents[1] / "tests" / "samples" / "sdcmicro"
SCORER = "posterior-linkage"
OTHERS = ["linkage", "distance-linkage", "assignment", "view-linkage"]


def files(rows: int) -> Iterator[tuple[str, pl.DataFrame]]:
    """Two real files with two categories and four numbers each."""
    money = pl.read_csv(FILES / "CASCrefmicrodata.csv")[:rows]
    yield (
        "CASC",
        money.select(
            (pl.col("AFNLWGT") // 60_000).cast(pl.String).alias("region"),
            (pl.col("EMCONTRB") // 1500).cast(pl.String).alias("plan"),
            *("AGI", "FEDTAX", "POTHVAL", "FICA"),
        ),
    )
    people = pl.read_csv(FILES / "testdata.csv").sample(rows, seed=1)
    categories = pl.col("roof", "relat").cast(pl.String)
    yield "testdata", people.select(categories, "age", "expend", "income", "savings")


def releases(names: list[str]) -> Iterator[tuple[str, list[str], list[Any]]]:
    """A short name, the released columns, and the steps. Mixtures leave different evidence in different columns."""
    categories, numbers = names[:2], names[2:]
    amounts = numbers[1:]
    pairs = [{"columns": numbers[place : place + 2], "k": 5} for place in (0, 2)]
    pram = {"pram": {"columns": categories, "keep": 0.7}}
    yield "mondrian", names, ["mondrian"]
    yield "mondrian + rank-swap 30", names, ["mondrian", {"rank-swap": {"p": 30, "columns": amounts}}]
    yield "mondrian + noise 1", names, ["mondrian", {"noise": {"variance_ratio": 1.0, "columns": amounts}}]
    yield "suppress-cells", names, ["suppress-cells"]
    yield "rank-swap 10", numbers, [{"rank-swap": {"p": 10, "columns": numbers}}]
    yield "rank-swap 30, amounts", names, [{"rank-swap": {"p": 30, "columns": amounts}}]
    yield "swap 20 %", names, [{"swap": {"rate": 0.2, "columns": amounts}}]
    yield "noise 0.3", numbers, [{"noise": {"variance_ratio": 0.3, "columns": numbers}}]
    correlated = {"variance_ratio": 0.3, "variant": "correlated", "columns": numbers}
    yield "correlated noise 0.3", numbers, [{"noise": correlated}]
    yield "microaggregate 5", numbers, [{"microaggregate": {"k": 5, "columns": numbers}}]
    yield "microaggregate 5, pairs", numbers, [{"microaggregate": {"groups": pairs}}]
    yield "microaggregate 5, fuzzy", numbers, [{"microaggregate": {"k": 5, "fuzzy": 2.0, "columns": numbers}}]
    yield "pram 0.7", names, [pram]
    yield "pram 0.7 + noise 0.5", names, [pram, {"noise": {"variance_ratio": 0.5, "columns": amounts}}]
    yield "rounding", names, [{"round": {"columns": amounts, "base": 20_000}}]
    yield "shuffle, amounts", names, [{"shuffle": {"columns": amounts}}]


def scenario(frame: pl.DataFrame, roles: dict[str, str], steps: list[Any]) -> AttackScenario:
    data = Data.of(Table(frame=frame), Schema(columns={name: Column(role=role) for name, role in roles.items()}))
    models = [KAnonymity(k=5)] if steps[0] in ("mondrian", "suppress-cells") else []
    made = protect(data, steps=[registry("method").part(step, Step) for step in steps], models=models, rng=Rng(3))
    release = Release(table=made.data.table, manifest={"steps": [step.public() for step in made.steps]})
    return AttackScenario(original=data, release=release, lineage=made.lineage, knows=tuple(frame.columns))


def found(attack: str, where: AttackScenario) -> Outcome | None:
    name, _, value = attack.partition("=")
    part = registry("attack").part({name: value} if value else name, Attack)
    try:
        return evaluate_attack(part, where, rng=Rng(1))
    except NotApplicable:
        return None


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    attacks = [SCORER, *(sys.argv[2:] or OTHERS)]
    more: Counter[str] = Counter()
    for known in (True, False):
        print(f"{'method known' if known else 'method unknown':38}", *(f"{name:>18}" for name in attacks))
        for file, frame in files(rows):
            for name, columns, steps in releases(frame.columns):
                where = scenario(frame.select(columns), roles(columns, steps), steps)
                if not known:
                    where = AttackScenario(
                        original=where.original,
                        release=Release(table=where.release.table, manifest={}),
                        lineage=where.lineage,
                        knows=where.knows,
                    )
                outcomes = {attack: found(attack, where) for attack in attacks}
                rates = {attack: item.main.rate for attack, item in outcomes.items() if item is not None}
                print(
                    f"{file + ', ' + name:38}",
                    *(f"{100 * rates[attack]:18.1f}" if attack in rates else f"{'-':>18}" for attack in attacks),
                    flush=True,
                )
                own = rates.get(SCORER, 0.0)
                for attack, rate in rates.items():
                    noise = 2 * ((own * (1 - own) + rate * (1 - rate)) / rows) ** 0.5
                    more[attack] += rate > own + noise
    print(f"{'clearly more than the scorer':38}", *(f"{more[attack]:18}" for attack in attacks))


def roles(columns: list[str], steps: list[Any]) -> dict[str, str]:
    """Amounts that only a later step masks are sensitive, so that Mondrian groups the other columns."""
    mixed = steps[0] == "mondrian" and len(steps) > 1
    return {name: "sensitive" if mixed and place > 2 else "quasi" for place, name in enumerate(columns)}


if __name__ == "__main__":
    main()
