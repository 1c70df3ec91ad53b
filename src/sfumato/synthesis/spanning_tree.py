"""MST: all one-way marginals, and the two-way marginals of a privately selected maximum spanning tree."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from sfumato.synthesis.estimate import MarginalEstimates
from sfumato.synthesis.private_counts import PrivateCounts
from sfumato.synthesis.residuals import Columns


def measure_spanning_tree(
    counts: PrivateCounts,
    estimates: MarginalEstimates,
    squared: Fraction,
    *,
    weights: dict[Columns, int],
) -> None:
    """Spend ``squared`` on the edges of a tree: one third to select them, two thirds to measure them.

    Each selection prefers the pair of ``weights`` whose counts differ most from independence, among pairs that join two
    parts of the forest so far (McKenna, Miklau, Sheldon 2021, doi:10.29012/jpc.778). The estimate of a tree is exact
    and needs no iteration. Columns whose values are given when rows are drawn are one part from the start.
    """
    shape = counts.shape
    pairs = [columns for columns in weights if len(columns) == 2]
    expected = {pair: estimates.independent(pair) for pair in pairs}
    part = [estimates.given[0] if column in estimates.given else column for column in range(len(shape))]
    joins = len(set(part)) - 1
    edges: list[Columns] = []
    while True:
        open_pairs = [pair for pair in pairs if part[pair[0]] != part[pair[1]]]
        if not open_pairs:
            break
        number = counts.select(
            open_pairs,
            [expected[pair] for pair in open_pairs],
            penalties=[0.0] * len(open_pairs),
            weights=[weights.get(pair, 1) for pair in open_pairs],
            squared=squared / 3 / joins,
        )
        edges.append(open_pairs[number])
        joined, absorbed = (part[column] for column in edges[-1])
        part = [joined if name == absorbed else name for name in part]
    for edge, share in zip(edges, _shares(edges, shape), strict=True):
        estimates.add(counts.measure(edge, squared * 2 / 3 * share))


def _shares(edges: Sequence[Columns], shape: Sequence[int]) -> list[Fraction]:
    """Shares of the budget that minimize the sum of the L1 errors: proportional to cells^(2/3)."""
    sizes = [Fraction(round((shape[a] * shape[b]) ** (2 / 3) * 1000)) for a, b in edges]
    return [size / sum(sizes) for size in sizes]
