"""Demo: search logs. Pseudonyms do not protect what people search for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from sfumato.attacks import AttackScenario, evaluate_attack
from sfumato.attacks.base import UnitLinking
from sfumato.attacks.record_linkage.directory_linkage import DirectoryLinkage
from sfumato.attacks.record_linkage.sparse_linkage import SparseLinkage
from sfumato.data import write
from sfumato.data.table import Table
from sfumato.dataset import Data, Schema
from sfumato.demos.base import Demo, Say
from sfumato.demos.corpora.synthetic_log import search_log
from sfumato.events.methods.generalize_items import GeneralizeItems
from sfumato.events.methods.microaggregate_units import MicroaggregateUnits
from sfumato.events.methods.private_item_counts import PrivateItemCounts
from sfumato.events.methods.remove_identifying_items import RemoveIdentifyingItems
from sfumato.events.methods.suppress_items import SuppressItems
from sfumato.masking.base import Context, Step
from sfumato.masking.pipeline import MaskingResult, protect
from sfumato.measures.base import ReleasePair
from sfumato.measures.disclosure.item_uniqueness import ItemUniqueness
from sfumato.measures.utility.recommender import Recommender
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Release
from sfumato.rng import Rng

RECIPE = """\
sfumato: 1
data: searches.csv
unit: user
columns:
  user: {role: identifier}
  query: {role: quasi, hierarchy: {file: taxonomy.csv}}
  time: {role: drop}
steps:
  - pseudonymize: {columns: [user], key: pseudonyms.key}
  - generalize-items: {item: query, k: 5, m: 2}
attacks:
  - sparse-linkage: {item: query}
  - directory-linkage: {item: query, directory: directory.csv, identity: user, terms: [name, town]}
measures:
  - item-uniqueness: {item: query, events: 6}
  - recommender: {item: query}
limits: {risk: 0.05}
"""


class SearchesDemo(Demo):
    """Search logs: numbers instead of names do not hide who searched, because people search for themselves.

    All people in this demo are synthetic.
    """

    reference = (
        "Jones, Kumar, Pang, Tomkins (2007), doi:10.1145/1321440.1321573; Götz et al. (2012), "
        "doi:10.1109/TKDE.2011.26; Terrovitis, Mamoulis, Kalnis (2008), doi:10.14778/1453856.1453874"
    )

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        log = search_log(1200, 36_000, seed=self.seed)
        write(Table(frame=log.events), folder / "searches.csv", force=True)
        write(Table(frame=log.directory), folder / "directory.csv", force=True)
        lines = log.taxonomy.with_columns(root=pl.lit("*"))
        lines.write_csv(folder / "taxonomy.csv", separator=";", include_header=False)
        (folder / "recipe.yaml").write_text(RECIPE, encoding="utf-8")
        recipe = Recipe.load(folder / "recipe.yaml")
        data = Data.of(Table(frame=log.events), recipe.schema)
        trial = _Trial(data, folder / "directory.csv")
        say(
            f"\n[bold]1. A search engine publishes {log.events.height:,} queries of 1,200 people,[/bold] with a number "
            "instead of each name. The attacker has a directory with names and towns."
        )
        raw = trial.of([])
        growth = {seen: trial.rate(raw, trial.directory(seen)) for seen in (2, 10, None)}
        say(
            f"\n[bold]2. Attack.[/bold] Seeing 2 queries of each person, the directory finds {growth[2]:.0%} of the "
            f"people; with 10 queries {growth[10]:.0%}, with all queries [bold]{growth[None]:.0%}[/bold]. A single "
            "query seldom identifies anybody."
        )
        curve = trial.curve(raw)
        say(
            f"\n[bold]3. Unicity.[/bold] Known queries of a person, and how many people are then unique: 1 query "
            f"{curve['1']:.0%}, 2 queries {curve['2']:.0%}, 4 queries [bold]{curve['4']:.0%}[/bold]."
        )
        say(
            "\n[bold]4. Protection.[/bold] Found by the directory, found by an attacker who knows 8 queries, unique by "
            "4 queries, and what is left for a recommender:"
        )
        methods: dict[str, list[Step]] = {
            "nothing": [],
            "identifying queries removed": [RemoveIdentifyingItems(item="query")],
            "rare queries removed (k = 5)": [SuppressItems(item="query", k=5, m=1)],
            "k^m-anonymity, generalized": [GeneralizeItems(item="query", k=5, m=2)],
            "microaggregated (k = 5)": [MicroaggregateUnits(item="query", k=5)],
        }
        figures = {name: trial.figures(steps) for name, steps in methods.items()}
        for name, one in figures.items():
            say(
                f"   {name:<29} {one['directory']:6.1%} {one['known']:6.1%} {one['unique']:7.1%} "
                f"{one['recommender']:7.1%}"
            )
        counts = PrivateItemCounts(item="query", epsilon=2, delta=1e-6, max_items=10)
        table = counts.apply(data, Context(rng=Rng(self.seed))).table.frame
        say(
            "\n[bold]5. Counts only.[/bold] With differential privacy (epsilon 2, at most 10 queries of a person) "
            f"{table.height} frequent queries are released. A query of one person passes with probability at most "
            "0.000001."
        )
        say(f"\nTry it:  sfumato protect {folder / 'recipe.yaml'} --out {folder / 'release'}")
        return {
            "found_by_queries_seen": {str(seen or "all"): rate for seen, rate in growth.items()},
            "unicity": curve,
            "methods": figures,
            "private_queries": table.height,
        }


class _Trial:
    """A log with the attacks and measures of the demo."""

    def __init__(self, data: Data, directory: Path) -> None:
        self.data, self.path = data, directory

    def directory(self, seen: int | None = None) -> DirectoryLinkage:
        return DirectoryLinkage(
            item="query", directory=self.path, identity="user", terms=("name", "town"), queries=seen
        )

    def of(self, steps: Sequence[Step]) -> MaskingResult:
        """The masked log. The numbers of the users are pseudonyms already and stay."""
        columns = {name: column for name, column in self.data.schema.columns.items() if name != "user"}
        plain = Data(table=self.data.table, schema=Schema(columns=columns, unit="user"))
        return protect(plain, steps=steps, rng=Rng(1))

    def rate(self, result: MaskingResult, attack: UnitLinking) -> float:
        release = Release(table=result.data.table, manifest={})
        scenario = AttackScenario(original=self.data, release=release, lineage=result.lineage)
        return evaluate_attack(attack, scenario, rng=Rng(2), n_targets=600).main.rate

    def curve(self, result: MaskingResult) -> dict[str, float]:
        pair = ReleasePair(original=self.data, release=Release(table=result.data.table, manifest={}))
        detail = ItemUniqueness(item="query", events=4, people=400).compute(pair, Rng(3)).detail
        return dict(detail["by_events"])

    def figures(self, steps: Sequence[Step]) -> dict[str, float]:
        result = self.of(steps)
        release = Release(table=result.data.table, manifest={})
        pair = ReleasePair(original=self.data, release=release, lineage=result.lineage)
        return {
            "directory": self.rate(result, self.directory()),
            "known": self.rate(result, SparseLinkage(item="query")),
            "unique": self.curve(result)["4"],
            "recommender": Recommender(item="query").compute(pair, Rng(4)).value or 0.0,
        }
