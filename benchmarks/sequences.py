"""Search logs and ratings: protected and attacked at the size of the AOL log and of the Netflix prize.

    python benchmarks/sequences.py searches [users] [queries] [--record] [--picture docs/images/unicity.svg]
    python benchmarks/sequences.py ratings [people] [films] [ratings] [--record]
    python benchmarks/sequences.py detector [--record]

Logs and ratings are synthetic. For each method: CPU seconds of masking (with the check of its guarantee), rows left,
the share of people found by an attacker who knows 8 events, by a directory, the share of unique people by 4 events, and
the hit rate of a recommender. Ratings also have the peak memory of the process so far.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit
from record import Figures

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.base import UnitLinking
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.attacks.record_linkage.sparse_linkage import SparseLinkage
from sfumato.data.table import Table
from sfumato.dataset import Column, Data, Schema
from sfumato.demos.corpora import search_log
from sfumato.events import (
    GeneralizeItems,
    MicroaggregateUnits,
    PrivateItemCounts,
    RemoveIdentifyingItems,
    SuppressItems,
    identifying_kinds,
)
from sfumato.events.identifying_queries import KINDS as QUERY_KINDS
from sfumato.masking.base import Context, Step
from sfumato.masking.methods.remove import Remove
from sfumato.masking.pipeline import protect
from sfumato.measures.base import ReleasePair
from sfumato.measures.disclosure.item_uniqueness import ItemUniqueness
from sfumato.measures.utility.recommender import Recommender
from sfumato.release import Release
from sfumato.rng import Rng
from sfumato.stats import wilson

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from ambiguous_queries import more_held_out_queries
from held_out_queries import held_out_queries

COLUMNS = {"method": "", "mask": ",.0f", "attack": ",.0f", "rows": ",", "known": ".1%", "directory": ".1%",
           "unique": ".1%", "recommender": ".1%", "verdict": ""}  # fmt: skip
TITLES = {"mask": "masking, CPU s", "attack": "attacks and measures, CPU s", "rows": "rows released",
          "known": "found by 8 events", "directory": "found by a directory", "unique": "unique by 4 events",
          "recommender": "recommender"}  # fmt: skip

RATING_COLUMNS = {"method": "", "mask": ",.0f", "attack": ",.0f", "rows": ",", "known": ".1%", "stars": ".1%",
                  "unique": ".1%", "recommender": ".1%", "memory": ".1f", "verdict": ""}  # fmt: skip
RATING_TITLES = {**TITLES, "known": "found by 8 films", "stars": "found by 8 films and stars",
                 "unique": "unique by 4 films", "memory": "memory, GB"}  # fmt: skip


def figures(
    table: Figures, data: Data, methods: dict[str, list[Step]], item: str, attacks: dict[str, UnitLinking]
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
        found = {
            key: evaluate_attack(attack, scenario, rng=Rng(2), n_targets=1000).main.rate
            for key, attack in attacks.items()
            if set(attack.event_columns) <= set(release.table.columns)
        }
        pair = ReleasePair(original=data, release=release, lineage=result.lineage)
        unicity = ItemUniqueness(item=item, events=8, people=500).compute(pair, Rng(3))
        curves[name] = unicity.detail["by_events"]
        hits = Recommender(item=item, people=500).compute(pair, Rng(4)).value
        verdict = ", ".join(f"{one.model} {one.state}" for one in result.verdicts)
        table.add(
            method=name, mask=masked, attack=time.process_time() - started, rows=result.data.rows,
            unique=curves[name]["4"], recommender=hits, verdict=verdict, **found, **peak(table),
        )  # fmt: skip
    return curves


def peak(table: Figures) -> dict[str, float]:
    """The largest memory of this process so far in GB, where the table shows it."""
    return {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20} if "memory" in table.columns else {}


def searches(users: int = 650_000, queries: int = 20_000_000, picture: str | None = None) -> None:
    log = search_log(users, queries, seed=1)
    print(f"{log.events.height:,} queries of {users:,} people, {log.taxonomy.height:,} different ones")
    with tempfile.TemporaryDirectory() as folder:
        rows, directory = Path(folder, "taxonomy.csv"), Path(folder, "directory.parquet")
        log.taxonomy.with_columns(root=pl.lit("*")).write_csv(rows, separator=";", include_header=False)
        log.directory.write_parquet(directory)
        query = Column.model_validate({"role": "quasi", "hierarchy": {"file": str(rows)}})
        schema = Schema(columns={"query": query}, unit="user")
        data = Data.of(Table(frame=log.events.drop("time")), schema)
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


def rated(people: int, films: int, count: int) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Synthetic ratings and the genre of each film, with the marginals of the Netflix prize.

    The number of ratings of a person is log-normal (median 96, mean 209 at full size, at most a quarter of the films).
    A film's popularity falls with its rank: the first tenth of the films has six tenths of the ratings. Two thirds of
    the ratings are in two favourite genres of the person. Stars depend on the film and the person.
    """
    draw = np.random.default_rng(1)
    weight = (np.arange(films) + 300.0) ** -1.3
    genre = draw.integers(0, 12, films)
    # for each genre, and for all films, a table from which equal draws give a film with its chance
    tables = np.empty((13, 1 << 20), dtype=np.int32)
    for one in range(13):
        chance = np.cumsum(weight if one == 12 else np.where(genre == one, weight, 0))
        tables[one] = np.searchsorted(chance / chance[-1], (np.arange(1 << 20) + 0.5) / (1 << 20))
    size = draw.lognormal(0, 1.25, people)
    size = np.minimum(size * count / size.sum(), films / 4).astype(np.int64) + 1
    quality, kindness = draw.normal(3.6, 0.5, films), draw.normal(0, 0.4, people)
    user, film = np.repeat(np.arange(people, dtype=np.int32), size), np.empty(int(size.sum()), dtype=np.int32)
    stars = np.empty(len(film), dtype=np.uint8)
    _rate(size, draw.integers(0, 12, (people, 2)), tables, quality, kindness, film, stars)
    return pl.DataFrame({"user": user, "film": film, "stars": stars}), genre


@njit(cache=True)
def _rate(
    size: npt.NDArray[np.int64],
    taste: npt.NDArray[np.int64],
    tables: npt.NDArray[np.int32],
    quality: npt.NDArray[np.float64],
    kindness: npt.NDArray[np.float64],
    film: npt.NDArray[np.int32],
    stars: npt.NDArray[np.uint8],
) -> None:
    """Different films for each person, and their stars."""
    np.random.seed(2)
    seen = np.full(len(quality), -1)
    at = 0
    for person in range(len(size)):
        stop = at + size[person]
        while at < stop:
            which = 12 if np.random.random() < 1 / 3 else taste[person, np.random.randint(0, 2)]
            one = tables[which, np.random.randint(0, tables.shape[1])]
            if seen[one] != person:
                seen[one] = person
                film[at] = one
                liked = quality[one] + kindness[person] + 0.9 * np.random.normal()
                stars[at] = int(min(5.0, max(1.0, np.floor(liked + 0.5))))
                at += 1


def ratings(people: int = 480_000, films: int = 17_770, count: int = 100_000_000) -> None:
    """Ratings with stars; the attacker knows films and stars, the latter off by up to one."""
    frame, genre = rated(people, films, count)
    top = frame["film"].value_counts()["count"].max()
    print(f"{frame.height:,} ratings of {people:,} people, the first film is rated by {top / people:.0%}", flush=True)
    labels = [[str(number), f"genre {genre[number]}", "*"] for number in range(films)]
    column = Column.model_validate({"role": "quasi", "hierarchy": {"table": {"rows": labels}}})
    data = Data.of(Table(frame=frame), Schema(columns={"film": column}, unit="user"))
    del frame
    figures(
        Figures("sequences", "ratings", RATING_COLUMNS, RATING_TITLES),
        data,
        {
            "nothing": [],
            "microaggregated (k = 10)": [MicroaggregateUnits(item="film", k=10, columns=("stars",))],
            "k^m-anonymity by suppression (k = 20, m = 2), stars removed": [
                Remove(columns=("stars",)),
                SuppressItems(item="film", k=20, m=2),
            ],
        },
        "film",
        {"known": SparseLinkage(item="film"), "stars": SparseLinkage(item="film", rating="stars", rating_error=1)},
    )


def detector(count: int = 20_000) -> None:
    """Recall of the detector: on a log and queries it was written with, and on queries it was not."""
    log = search_log(2000, count, seed=1)
    sides = [
        log.events.select("query").with_columns(kind=log.kinds),
        held_out_queries(count, seed=1),
        more_held_out_queries(count, seed=1),
    ]
    found = [side.with_columns(found=identifying_kinds(side["query"])) for side in sides]
    titles = {"kind": "query", "log": "found in the synthetic log", "held_out": "in queries written later",
              "more": "in held-out queries"}  # fmt: skip
    table = Figures("sequences", "detector", dict.fromkeys(titles, ""), titles)
    for kind in (*QUERY_KINDS, None):
        words = []
        for side in found:
            own = side.filter(pl.col("kind").eq_missing(pl.lit(kind)))
            hits = own["found"].is_not_null().sum()
            low, high = wilson(hits, own.height) if own.height else (0.0, 0.0)
            words.append(f"{hits / own.height:.1%} ({low:.1%} to {high:.1%})" if own.height else "–")
        table.add(kind=kind or "not identifying", log=words[0], held_out=words[1], more=words[2])


def draw(curves: dict[str, dict[str, float]], path: Path) -> None:
    """The unicity curves before and after, as in a report."""
    from sfumato.drawing import Place
    from sfumato.reports.figures import unicity_chart

    sides = {"before": curves["nothing"], "after": curves["k^m-anonymity by suppression (k = 20, m = 2)"]}
    rows = tuple(Place(x=int(n), y=share, when=when) for when, one in sides.items() for n, share in one.items())
    label = "Share of unique people by the number of known queries, before and after"
    path.write_text(unicity_chart(rows).draw(640).file(title=label), encoding="utf-8")


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
