"""Demo: social graphs. Names are removed, and friendships still identify almost everybody."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from sfumato.attacks import Outcome
from sfumato.attacks.graph._base import GraphAttack
from sfumato.attacks.graph._evaluate import GraphScenario, evaluate_graph_attack
from sfumato.demos.base import Demo, Say
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.graphs.base import GraphMethod
from sfumato.graphs.graph import Graph
from sfumato.graphs.methods.anonymize_degrees import AnonymizeDegrees
from sfumato.graphs.methods.cluster_nodes import ClusterNodes
from sfumato.graphs.methods.switch_edges import SwitchEdges
from sfumato.graphs.methods.symmetrize_edges import SymmetrizeEdges
from sfumato.graphs.signatures import colours, unique_share
from sfumato.progress import SILENT, Progress
from sfumato.registry import registry
from sfumato.reports.graph_picture import before_and_after
from sfumato.rng import Rng

_ATTACKS = ("degree-matching", "neighbour-degrees", "correlated-neighbourhoods", "link-disclosure")
_RECIPE = """\
sfumato: 1
graph: {edges: friends.csv, nodes: people.csv, key: node}
columns: {town: drop, age: drop, vote: sensitive}
models: [k-degree-anonymity: 10]
steps: [anonymize-degrees: 10]
"""


class FriendsDemo(Demo):
    """Social graph of synthetic people: who is found by their friendships, and what ways to protect it achieve.

    All people in this demo are synthetic.
    """

    reference = "Hay et al. (2008), doi:10.14778/1453856.1453873; Narayanan, Shmatikov (2009), doi:10.1109/SP.2009.22"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        rng = Rng(self.seed)
        graph = synthetic_friends(1500, rng.child("people"))
        names, ends = graph.nodes["node"], graph.edges()
        friends = pl.DataFrame({"person": names.gather(ends[:, 0]), "friend": names.gather(ends[:, 1])})
        friends.write_csv(folder / "friends.csv")
        graph.nodes.write_csv(folder / "people.csv")
        (folder / "friends.yaml").write_text(_RECIPE, encoding="utf-8")
        unique = [unique_share(colours(graph, depth)) for depth in (0, 1, 2)]
        say(
            f"\n[bold]1. {graph.size:,} people, {graph.edge_count:,} friendships.[/bold] Names are replaced by random "
            f"numbers. The number of their friends is unique for {unique[0]:.1%} of the people, the numbers of friends "
            f"of their friends for [bold red]{unique[1]:.1%}[/bold red]."
        )
        methods: dict[str, GraphMethod | None] = {
            "numbers instead of names": None,
            "k-degree anonymity, k = 10": AnonymizeDegrees(k=10),
            "10 % of edges switched": SwitchEdges(share=0.1),
            "symmetric, k = 10": SymmetrizeEdges(k=10),
            "clusters of at least 10": ClusterNodes(k=10),
        }
        say("\n[bold]2. Five releases, attacked.[/bold] Share of people found, and of friendships guessed right:")
        table: dict[str, object] = {}
        for title, method in methods.items():
            rates, drawing = _attacked(graph, method, rng)
            table[title] = rates
            shown = ", ".join(f"{name} {rate:.1%}" for name, rate in rates.items())
            say(f"   [bold]{title}[/bold]: {shown}")
            if isinstance(method, AnonymizeDegrees):
                for name, svg in zip(("before", "after"), drawing, strict=True):
                    (folder / f"{name}.svg").write_text(svg, encoding="utf-8")
        say(
            "\n[bold]3. What it means.[/bold] k-degree anonymity stops attackers who count friends and nobody else. "
            "Switched edges hide single friendships from exact comparison, but neighbourhoods as a whole still agree. "
            "In a symmetric graph ten nodes look alike to everybody; clusters with counts leave no node to be found. "
            "For friendship, a coin is right in half of the cases."
        )
        say(f"\nPictures:  {folder / 'before.svg'} and {folder / 'after.svg'}")
        say(f"Try it:  sfumato protect {folder / 'friends.yaml'} --out {folder / 'release'}\n")
        return {"people": graph.size, "friendships": graph.edge_count, "unique": unique, "rates": table}


def _attacked(graph: Graph, method: GraphMethod | None, rng: Rng) -> tuple[dict[str, float], tuple[str, str]]:
    """Share of correct guesses of each attack on the release of a method, and its pictures."""

    def protect(known: Graph, own: Rng) -> Graph:
        return known if method is None else method.apply(known, own).graph

    change = None if method is None else method.apply(graph, rng.child("release"))
    released = graph if change is None else change.graph
    order = rng.child("order").generator.permutation(graph.size)
    labels = None if change is None or change.labels is None else change.labels[order]
    release = released.reordered(order)
    scenario = GraphScenario(original=graph, release=release, lineage=order, protect=protect, clusters=labels)
    rates = {}
    for name in _ATTACKS:
        attack = registry("graph-attack").get(name).build()
        assert isinstance(attack, GraphAttack)
        found: Outcome = evaluate_graph_attack(attack, scenario, rng.child(name), n_targets=400)[0]
        rates[name.replace("-", " ")] = float(np.round(found.main.rate, 4))
    return rates, before_and_after(graph, release, order, rng.child("picture").generator, most=90)
