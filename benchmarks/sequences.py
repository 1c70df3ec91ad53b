"""Search logs and ratings: protected and attacked at the size of the AOL log and of the Netflix prize.

    python benchmarks/sequences.py searches [users] [queries] [--record] [--picture docs/images/unicity.svg]
    python benchmarks/sequences.py ratings [people] [films] [ratings] [--record]
    python benchmarks/sequences.py detector [--record]

Logs and ratings are synthetic. For each method: CPU seconds of masking (with the check of its guarantee), rows left,
the share of people found by an attacker who knows 8 events, by a directory, the share of unique people by 4 events, and
the hit rate of a recommender (for fewer than five million rows).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from record import Figures

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.base import UnitLinking
from sfumato.attacks.evaluation.intervals import wilson
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.attacks.record_linkage.sparse_linkage import SparseLinkage
from sfumato.data.table import Table
from sfumato.masking.base import Context, Step
from sfumato.masking.pipeline import protect
from sfumato.measures.base import ReleasePair
from sfumato.measures.disclosure.item_uniqueness import ItemUniqueness
from sfumato.measures.utility.recommender import Recommender
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.schema import Column, Dataset, Schema
from sfumato.sequences import (
    GeneralizeItems,
    MicroaggregateUnits,
    PrivateItemCounts,
    RemoveIdentifyingItems,
    SuppressItems,
    held_out_queries,
    identifying_kinds,
    search_log,
)
from sfumato.sequences.identifying_queries import KINDS as QUERY_KINDS

COLUMNS = {"method": "", "mask": ",.0f", "attack": ",.0f", "rows": ",", "known": ".1%", "directory": ".1%",
           "unique": ".1%", "recommender": ".1%", "verdict": ""}  # fmt: skip
TITLES = {"mask": "masking, CPU s", "attack": "attacks and measures, CPU s", "rows": "rows released",
          "known": "found by 8 events", "directory": "found by a directory", "unique": "unique by 4 events",
          "recommender": "recommender"}  # fmt: skip


def figures(
    table: Figures, data: Dataset, methods: dict[str, list[Step]], item: str, attacks: dict[str, UnitLinking]
) -> dict[str, dict[str, float]]:
    """A row per method; the unicity curves of all of them."""
    curves = {}
    for name, steps in methods.items():
        started = time.process_time()
        result = protect(data, steps=steps, rng=Rng(1))
        masked = time.process_time() - started
        release = Release(table=result.data.table, manifest={})
        scenario = AttackScenario(original=data, release=release, lineage=result.lineage)
        started = time.process_time()
        found = {key: evaluate_attack(attack, scenario, rng=Rng(2), n_targets=1000).main.rate for key, attack in attacks.items()}  # fmt: skip  # noqa: E501
        pair = ReleasePair(original=data, release=release, lineage=result.lineage)
        unicity = ItemUniqueness(item=item, events=8, people=500).of(pair, Rng(3))
        curves[name] = unicity.detail["by_events"]
        hits = Recommender(item=item).of(pair, Rng(4)).value if data.rows < 5_000_000 else None
        verdict = ", ".join(f"{one.model} {one.state}" for one in result.verdicts)
        table.add(
            method=name, mask=masked, attack=time.process_time() - started, rows=result.data.rows,
            unique=curves[name]["4"], recommender=hits, verdict=verdict, **found,
        )  # fmt: skip
    return curves


def searches(users: int = 650_000, queries: int = 20_000_000, picture: str | None = None) -> None:
    log = search_log(users, queries, seed=1)
    print(f"{log.events.height:,} queries of {users:,} people, {log.taxonomy.height:,} different ones")
    with tempfile.TemporaryDirectory() as folder:
        rows, directory = Path(folder, "taxonomy.csv"), Path(folder, "directory.parquet")
        log.taxonomy.with_columns(root=pl.lit("*")).write_csv(rows, separator=";", include_header=False)
        log.directory.write_parquet(directory)
        query = Column.model_validate({"role": "quasi", "hierarchy": {"file": str(rows)}})
        schema = Schema(columns={"query": query}, unit="user")
        data = Dataset.of(Table(frame=log.events.drop("time")), schema)
        del log
        table = Figures("sequences", "searches", COLUMNS, TITLES)
        curves = figures(
            table,
            data,
            {
                "nothing": [],
                "k^m-anonymity by suppression (k = 20, m = 2)": [SuppressItems(item="query", k=20, m=2)],
                "k^m-anonymity by generalization (k = 20, m = 2)": [GeneralizeItems(item="query", k=20, m=2)],
                "microaggregated (k = 20)": [MicroaggregateUnits(item="query", k=20)],
                "rare queries removed (k = 20)": [SuppressItems(item="query", k=20, m=1)],
                "identifying queries removed": [RemoveIdentifyingItems(item="query")],
            },
            "query",
            {
                "known": SparseLinkage(item="query"),
                "directory": DirectoryLinkage(
                    item="query", directory=directory, identity="user", terms=("name", "town")
                ),
            },
        )
    started = time.process_time()
    step = PrivateItemCounts(item="query", epsilon=2, delta=1e-8, max_items=20)
    released = step.apply(data, Context(rng=Rng(1))).table.rows
    seconds = time.process_time() - started
    table.add(method="private counts (epsilon 2)", mask=seconds, rows=released, verdict="differential-privacy holds")
    if picture is not None:
        draw(curves, Path(picture))


def ratings(people: int = 48_000, films: int = 18_000, count: int = 10_000_000) -> None:
    draw = np.random.default_rng(1)
    popularity = np.cumsum((np.arange(films) + 300.0) ** -1.3)
    taste, genre = draw.integers(0, 12, (people, 2)), draw.integers(0, 12, films)
    who = np.sort(np.minimum((people * draw.random(count) ** 1.7).astype(np.int64), people - 1))
    film = np.searchsorted(popularity / popularity[-1], draw.random(count)).clip(0, films - 1)
    # two thirds of the ratings go to a favourite genre: the next film of that genre
    by_genre = [np.flatnonzero(genre == one) for one in range(12)]
    liked = draw.random(count) < 2 / 3
    chosen = taste[who, draw.integers(0, 2, count)]
    for one, members in enumerate(by_genre):
        rows = liked & (chosen == one)
        film[rows] = members[np.searchsorted(members, film[rows]).clip(0, len(members) - 1)]
    frame = pl.DataFrame({"user": who, "film": film}).unique(maintain_order=True)
    labels = [[str(number), f"genre {genre[number]}", "*"] for number in range(films)]
    column = Column.model_validate({"role": "quasi", "hierarchy": {"table": {"rows": labels}}})
    data = Dataset.of(Table(frame=frame), Schema(columns={"film": column}, unit="user"))
    figures(
        Figures("sequences", "ratings", COLUMNS, TITLES),
        data,
        {
            "nothing": [],
            "k^m-anonymity by suppression (k = 20, m = 2)": [SuppressItems(item="film", k=20, m=2)],
            "microaggregated (k = 3)": [MicroaggregateUnits(item="film", k=3)],
            "microaggregated (k = 10)": [MicroaggregateUnits(item="film", k=10)],
        },
        "film",
        {"known": SparseLinkage(item="film")},
    )


def detector(count: int = 20_000) -> None:
    """Recall of the detector of identifying queries: on a log it was written with, and on queries it was not."""
    log = search_log(2000, count, seed=1)
    sides = [
        log.events.select("query").with_columns(kind=log.kinds),
        held_out_queries(count, seed=1),
    ]
    found = [side.with_columns(found=identifying_kinds(side["query"])) for side in sides]
    names = {"kind": "", "log": "", "held_out": ""}
    titles = {"kind": "query", "log": "found in the synthetic log", "held_out": "found in held-out queries"}
    table = Figures("sequences", "detector", names, titles)
    for kind in (*QUERY_KINDS, None):
        words = []
        for side in found:
            own = side.filter(pl.col("kind").eq_missing(pl.lit(kind)))
            hits = own["found"].is_not_null().sum()
            low, high = wilson(hits, own.height) if own.height else (0.0, 0.0)
            words.append(f"{hits / own.height:.1%} ({low:.1%} to {high:.1%})" if own.height else "–")
        table.add(kind=kind or "not identifying", log=words[0], held_out=words[1])


def draw(curves: dict[str, dict[str, float]], path: Path) -> None:
    """The unicity curves before and after, as in a report."""
    from sfumato.reports import pictures
    from sfumato.reports.svg import render

    sides = {"before": curves["nothing"], "after": curves["k^m-anonymity by suppression (k = 20, m = 2)"]}
    rows = [{"events": int(n), "when": when, "share": share} for when, one in sides.items() for n, share in one.items()]
    label = "Share of unique people by the number of known queries, before and after"
    svg = render(pictures.curve(rows, width=640), ident="unicity", label=label)
    path.write_text(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    words = sys.argv[1:]
    to = None
    if "--picture" in words:
        at = words.index("--picture")
        to = words[at + 1]
        del words[at : at + 2]
    kind, sizes = words[0], [int(word) for word in words[1:]]
    if kind == "searches":
        searches(*sizes, picture=to)
    elif kind == "detector":
        detector(*sizes)
    else:
        ratings(*sizes)
