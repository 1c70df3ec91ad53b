"""Picture of a graph before and after protection, as SVG: the same people stand at the same places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.graphs.graph import Graph, Ints

__all__ = ["before_and_after", "degrees_svg", "graph_svg", "layout", "neighbourhood"]

_SIDE = 420
_LINES = ("#2b5fab", "#d9730d", "#3d8b5f", "#8a4fae")
_COLOURS = {"same": "#8a8f98", "added": "#d9730d", "deleted": "#c4314b"}


def neighbourhood(graph: Graph, most: int, random: np.random.Generator) -> Ints:
    """A connected part of the graph with at most ``most`` nodes: breadth-first from a random well-linked node."""
    linked = np.flatnonzero(graph.degrees > 0)
    if not len(linked):
        return np.arange(min(most, graph.size))
    middle = linked[np.argsort(-graph.degrees[linked])][: max(1, len(linked) // 2)]
    queue = [int(random.choice(middle))]
    seen = set(queue)
    for node in queue:
        for friend in random.permutation(graph.neighbours(node))[: max(6, most // 8)]:
            if len(queue) < most and int(friend) not in seen:
                seen.add(int(friend))
                queue.append(int(friend))
    return np.array(queue, dtype=np.int64)


def layout(graph: Graph, random: np.random.Generator, rounds: int = 250) -> npt.NDArray[np.float64]:
    """Places in the unit square by the force-directed method of Fruchterman and Reingold (1991)."""
    place = random.random((graph.size, 2))
    ends, ideal = graph.edges(), 1 / max(graph.size, 1) ** 0.5
    for step in range(rounds):
        apart = place[:, None, :] - place[None, :, :]
        square = (apart**2).sum(axis=2) + 1e-6
        force = (apart * (ideal**2 / square)[:, :, None]).sum(axis=1)
        along = place[ends[:, 0]] - place[ends[:, 1]]
        pull = along * (np.sqrt((along**2).sum(axis=1)) / ideal)[:, None]
        np.add.at(force, ends[:, 0], -pull)
        np.add.at(force, ends[:, 1], pull)
        size = np.sqrt((force**2).sum(axis=1))[:, None] + 1e-9
        place = place + force / size * np.minimum(size, 0.1 * (1 - step / rounds))
    low, high = place.min(axis=0), place.max(axis=0)
    scaled: npt.NDArray[np.float64] = (place - low) / np.maximum(high - low, 1e-9)
    return scaled


def graph_svg(places: npt.NDArray[np.float64], edges: dict[str, Ints], *, label: str) -> str:
    """One drawing. ``edges`` holds those that are the same, added and deleted; deleted ones are dashed."""
    at = 12 + places * (_SIDE - 24)
    lines = []
    for kind, pairs in edges.items():
        style = f'stroke="{_COLOURS[kind]}" stroke-width="{0.8 if kind == "same" else 1.6}"'
        style += ' stroke-dasharray="4 3"' if kind == "deleted" else ""
        drawn = "".join(f"M{at[a][0]:.1f} {at[a][1]:.1f}L{at[b][0]:.1f} {at[b][1]:.1f}" for a, b in pairs)
        lines.append(f'<path d="{drawn}" fill="none" {style}/>' if drawn else "")
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in at)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_SIDE} {_SIDE}" width="{_SIDE}" height="{_SIDE}" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(lines)}<g fill="#2b5fab">{dots}</g></svg>'
    )


def before_and_after(
    original: Graph, release: Graph, lineage: Ints, random: np.random.Generator, *, most: int = 120
) -> tuple[str, str]:
    """A part of the original, and the same people in the release with added and deleted edges marked. Confidential."""
    place = np.full(original.size, -1, dtype=np.int64)
    place[lineage] = np.arange(len(lineage))
    shown = neighbourhood(original, most, random)
    shown = shown[place[shown] >= 0]
    before, after = original.reordered(shown), release.reordered(place[shown])
    where = layout(before, random)
    kept = after.has_edges(*before.edges().T)
    new = after.edges()[~before.has_edges(*after.edges().T)]
    parts = {"same": before.edges()[kept], "deleted": before.edges()[~kept], "added": new}
    return (
        graph_svg(where, {"same": before.edges()}, label="Part of the graph before protection"),
        graph_svg(where, parts, label="The same people after protection: added and deleted edges are marked"),
    )


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
