"""Picture of a graph before and after protection, as SVG: the same people stand at the same places."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sfumato.arrays import Ints
from sfumato.graphs.graph import Graph

_SIDE = 420
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
