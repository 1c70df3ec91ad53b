"""Graphs: degree anonymization, attacks after switching of edges, and a graph of a million people.

python benchmarks/graphs.py --degrees FILE [--record]    # optimal cost, edges kept and CPU seconds by k
python benchmarks/graphs.py --symmetric FILE [--record]  # edges kept by k-automorphism
python benchmarks/graphs.py --statistics FILE [--picture FILE.svg] [--record]  # error of private statistics
python benchmarks/graphs.py --attacks FILE [--record]    # rate of each attack with 5, 10 and 20 % switched edges
python benchmarks/graphs.py --aligned 1000000 [--record] # edges kept by k-automorphism in many small communities
python benchmarks/graphs.py --large 1000000 [--record]   # synthetic people with 20 friends each: CPU seconds, memory

FILE is an edge table, for example the ego-facebook graph of the Stanford Network Analysis Project.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from record import Figures

from sfumato.attacks.graph._base import GraphAttack, GraphView, NodeMatching
from sfumato.attacks.graph._evaluate import GraphScenario, evaluate_graph_attack
from sfumato.demos.corpora.synthetic_friends import synthetic_friends
from sfumato.dp.loss import pure
from sfumato.graphs import (
    AnonymizeDegrees,
    ClusterNodes,
    Graph,
    SwitchEdges,
    SymmetrizeEdges,
    as_graph,
    private_graph_summary,
)
from sfumato.graphs.degree_sequence import anonymous_degrees, smallest_class
from sfumato.graphs.private_triangles import triangles
from sfumato.graphs.realize_degrees import anonymize_degrees
from sfumato.graphs.signatures import colours, unique_share
from sfumato.graphs.symmetry import cycle_lengths
from sfumato.ledger.ledger import Ledger
from sfumato.registry import registry
from sfumato.rng import Rng

IDENTITY = (
    ("degree-matching", {}),
    ("neighbour-degrees", {}),
    ("weisfeiler-lehman", {"depth": 2}),
    ("correlated-neighbourhoods", {"rounds": 0}),
    ("correlated-neighbourhoods", {}),
    ("seed-and-propagate", {"seeds": 50, "overlap": 0.8}),
    ("planted-nodes", {"nodes": 12}),
    ("link-disclosure", {}),
)

_LINES = ("#2b5fab", "#d9730d", "#3d8b5f", "#8a4fae")
"""Colours of the lines."""


def degrees(graph: Graph) -> None:
    """Cost of the optimal sequence, and edges changed to reach it."""
    forms = {"k": "", "raise": ",", "added": ",", "deleted": ",", "kept": ".1%", "smallest": "", "cpu": ".2f"}
    titles = {"raise": "optimal cost, only raised", "kept": "edges kept", "cpu": "CPU s"}
    figures = Figures("graphs", "degrees", forms, titles | {"smallest": "smallest class"})
    anonymize_degrees(graph, 2, np.random.default_rng(1))
    for k in (2, 5, 10, 50):
        start = time.process_time()
        edits = anonymize_degrees(graph, k, np.random.default_rng(1), deletion_weight=2)
        result = edits.result()
        spent = time.process_time() - start
        row = {
            "k": k,
            "raise": int((anonymous_degrees(graph.degrees, k) - graph.degrees).sum()),
            "added": len(edits.added()),
            "deleted": len(edits.deleted()),
            "kept": 1 - len(edits.deleted()) / graph.edge_count,
            "smallest": smallest_class(result.degrees),
            "cpu": spent,
        }
        figures.add(**row)


def symmetric(graph: Graph) -> None:
    """Edges that a symmetric graph shares with the original."""
    forms = {"k": "", "edges": ",", "kept": ".1%", "smallest": "", "cpu": ".1f"}
    titles = {"edges": "edges released", "kept": "edges kept", "smallest": "smallest cycle", "cpu": "CPU s"}
    figures = Figures("graphs", "symmetric", forms, titles)
    for k in (2, 5, 10):
        start = time.process_time()
        change = SymmetrizeEdges(k=k).apply(graph, Rng(1))
        spent = time.process_time() - start
        assert change.symmetry is not None
        kept = 1 - change.counts["deleted"] / graph.edge_count
        smallest = int(cycle_lengths(change.symmetry).min())
        figures.add(k=k, edges=change.graph.edge_count, kept=kept, smallest=smallest, cpu=spent)


def aligned(people: int) -> None:
    """Edges that a symmetric graph shares with a large synthetic one of many small communities."""
    forms = {"people": ",", "k": "", "kept": ".1%", "cpu": ".0f", "peak": ".1f"}
    figures = Figures("graphs", "aligned", forms, {"kept": "edges kept", "cpu": "CPU s", "peak": "peak GB"})
    graph = synthetic_friends(people, Rng(1), degree=20.0)
    start = time.process_time()
    counts = SymmetrizeEdges(k=10).apply(graph, Rng(4)).counts
    spent, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    figures.add(people=people, k=10, kept=1 - counts["deleted"] / graph.edge_count, cpu=spent, peak=peak)


def attacks(graph: Graph) -> None:
    """Rate of each attack on graphs with switched edges, k-anonymous degrees and clusters."""
    methods: dict[str, Any] = {f"{share:.0%} switched": SwitchEdges(share=share) for share in (0.05, 0.1, 0.2)}
    methods |= {"k-degree, k = 10": AnonymizeDegrees(k=10), "symmetric, k = 5": SymmetrizeEdges(k=5)}
    methods |= {"clusters, k = 5": ClusterNodes(k=5)}
    figures = Figures(
        "graphs", "attacks", {"attack": "", **dict.fromkeys(methods, ".1%"), "cpu": ".1f"}, {"cpu": "CPU s"}
    )
    rates: dict[str, dict[str, Any]] = {}
    for title, method in methods.items():

        def protect(known: Graph, rng: Rng, method: Any = method) -> Graph:
            done: Graph = method.apply(known, rng).graph
            return done

        change = method.apply(graph, Rng(1))
        order = np.random.default_rng(2).permutation(graph.size)
        scenario = GraphScenario(
            original=graph, release=change.graph.reordered(order), lineage=order, protect=protect,
            clusters=change.labels[order] if change.labels is not None else None,
        )  # fmt: skip
        for name, parameters in IDENTITY:
            attack = registry("graph-attack").get(name).build(parameters)
            assert isinstance(attack, GraphAttack)
            start = time.process_time()
            # A planted pattern is found as a whole or not at all: one planting says nothing about the rate.
            seeds = range(3, 13) if name == "planted-nodes" else range(3, 4)
            outcomes = [evaluate_graph_attack(attack, scenario, Rng(seed), n_targets=2000)[0] for seed in seeds]
            label = f"{name}, vectors only" if parameters.get("rounds") == 0 else name
            row = rates.setdefault(label, {"attack": label, "cpu": 0.0})
            row[title] = float(np.mean([outcome.main.rate for outcome in outcomes]))
            row["cpu"] += time.process_time() - start
    for row in rates.values():
        figures.add(**row)


def degrees_svg(counts: Mapping[str, npt.NDArray[Any]], *, width: int = 640, height: int = 300) -> str:
    """Degree distributions as lines: the share of people with at least so many friends, both axes logarithmic."""
    most = max(2, *(int(np.flatnonzero(people).max(initial=1)) for people in counts.values()))
    lowest = min(1 / max(int(people.sum()), 2) for people in counts.values())

    def at(degree: float, share: float) -> str:
        x = 50 + (width - 70) * np.log(max(degree, 1)) / np.log(most)
        y = 20 + (height - 70) * np.log(max(share, lowest)) / np.log(lowest)
        return f"{x:.1f} {y:.1f}"

    drawn = []
    for number, (name, people) in enumerate(counts.items()):
        share = np.cumsum(people[::-1])[::-1] / max(int(people.sum()), 1)
        shown = np.unique(np.geomspace(1, most, 120).astype(np.int64))
        points = "L".join(at(float(d), float(share[d])) for d in shown if d < len(share) and share[d] > 0)
        colour = _LINES[number % len(_LINES)]
        dash = ' stroke-dasharray="6 3"' if number else ""
        drawn.append(f'<path d="M{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        drawn.append(f'<text x="70" y="{height - 130 + 18 * number}" fill="{colour}">{name}</text>')
    ticks = [10**power for power in range(int(np.log10(most)) + 1)]
    drawn += [f'<text x="{at(t, lowest).split()[0]}" y="{height - 30}" text-anchor="middle">{t}</text>' for t in ticks]
    levels = [10.0**-power for power in range(int(-np.log10(lowest)) + 1)]
    drawn += [f'<text x="4" y="{at(1, level).split()[1]}">{level:.4g}</text>' for level in levels]
    label = "Degree distributions: true and differentially private"
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="13" fill="#444">'
        f'{"".join(drawn)}<text x="{width - 20}" y="{height - 8}" text-anchor="end">friends, at least</text></svg>'
    )


def statistics(graph: Graph, picture: str) -> None:
    """Errors of differentially private statistics, and a picture of the degree distributions at epsilon = 1."""
    forms = {"protected": "", "epsilon": "", "edges": ".2%", "degrees": ".1%", "triangles": ".1%", "cpu": ".1f"}
    titles = {"edges": "error of edges", "degrees": "error of degrees", "triangles": "error of triangles"}
    figures = Figures("graphs", "statistics", forms, titles | {"cpu": "CPU s"})
    found, true_counts = triangles(graph)[0], np.bincount(graph.degrees)
    lines = {"true": true_counts}
    settings: dict[str, dict[str, Any]] = {"edges": {}, "nodes": {"max_degree": 200, "max_triangles": 40_000}}
    for protected, bounds in settings.items():
        for epsilon in ("0.1", "1", "10"):
            start, errors = time.process_time(), []
            for _ in range(10):
                ledger = Ledger.open(":memory:")
                ledger.set_cap(pure(10), dataset="g")
                done = private_graph_summary(
                    graph, protect=protected, epsilon=epsilon, ledger=ledger, dataset="g", **bounds
                )
                counts = dict(done.counts.select("statistic", "value").iter_rows())
                assert done.degrees is not None
                people = done.degrees["people"].to_numpy()
                wide = max(len(people), len(true_counts))
                shares = [np.cumsum(np.pad(p, (0, wide - len(p)))) / max(p.sum(), 1) for p in (people, true_counts)]
                errors.append(
                    (
                        abs(counts["edges"] / graph.edge_count - 1),
                        float(np.abs(shares[0] - shares[1]).max()),
                        abs(counts["triangles"] / found - 1),
                    )
                )
            mean = np.mean(errors, axis=0)
            row = {"protected": protected, "epsilon": epsilon, "cpu": (time.process_time() - start) / 10}
            figures.add(**row, edges=mean[0], degrees=mean[1], triangles=mean[2])
            if epsilon == "1":
                lines[f"{protected} protected, ε = 1"] = people
    if picture:
        Path(picture).write_text(degrees_svg(lines), encoding="utf-8")


def large(people: int) -> None:
    """Every step of the way on a synthetic graph."""
    figures = Figures(
        "graphs", "large", {"work": "", "result": "", "cpu": ".0f", "peak": ".1f"}, {"cpu": "CPU s", "peak": "peak GB"}
    )
    start = time.process_time()

    def done(work: str, result: str) -> None:
        nonlocal start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        figures.add(work=work, result=result, cpu=time.process_time() - start, peak=peak)
        start = time.process_time()

    graph = synthetic_friends(people, Rng(1), degree=20.0)
    done("generate", f"{graph.size:,} nodes, {graph.edge_count:,} edges")
    shares = [unique_share(colours(graph, depth)) for depth in (0, 1, 2)]
    done("uniqueness", " / ".join(f"{share:.1%}" for share in shares))
    change = AnonymizeDegrees(k=10).apply(graph, Rng(2))
    done("anonymize-degrees, k = 10", f"{change.counts['added']:,} edges added, {change.counts['deleted']:,} deleted")
    switched = SwitchEdges(share=0.1).apply(graph, Rng(3)).graph
    done("switch-edges, 10 %", f"{switched.edge_count:,} edges")
    alike = SymmetrizeEdges(k=10).apply(graph, Rng(4))
    done("symmetrize-edges, k = 10", f"{1 - alike.counts['deleted'] / graph.edge_count:.1%} of edges kept")
    clusters = ClusterNodes(k=10).apply(graph, Rng(5))
    done("cluster-nodes, k = 10", f"{clusters.counts['clusters']:,} clusters")
    order = np.random.default_rng(2).permutation(graph.size)
    targets = np.random.default_rng(4).permutation(graph.size)[:1000]
    view = GraphView(release=switched.reordered(order), known=graph, targets=targets)
    truth = np.argsort(order)[targets]
    for name in ("degree-matching", "neighbour-degrees", "correlated-neighbourhoods"):
        attack = registry("graph-attack").get(name).build()
        assert isinstance(attack, NodeMatching)
        rate = float(attack.match(view, Rng(6)).chance(truth).mean())
        done(f"{name}, 10 % switched, 1,000 targets", f"{rate:.1%} found")


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--degrees", default="")
    reader.add_argument("--symmetric", default="")
    reader.add_argument("--attacks", default="")
    reader.add_argument("--statistics", default="")
    reader.add_argument("--picture", default="")
    reader.add_argument("--aligned", type=int, default=0)
    reader.add_argument("--large", type=int, default=0)
    given = reader.parse_args()
    if given.degrees:
        degrees(as_graph(given.degrees))
    if given.symmetric:
        symmetric(as_graph(given.symmetric))
    if given.statistics:
        statistics(as_graph(given.statistics), given.picture)
    if given.attacks:
        attacks(as_graph(given.attacks))
    if given.aligned:
        aligned(given.aligned)
    if given.large:
        large(given.large)


if __name__ == "__main__":
    main()
