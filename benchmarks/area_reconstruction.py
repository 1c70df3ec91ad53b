"""Reconstruction of the people of small areas from published tables of counts, by constraint programming.

Each published count is a linear equation of the unknown numbers of people by area and combination of values. One
integer solution of all equations is a list of people that agrees with everything published, as in the experiment of the
US Census Bureau on its 2010 tables. Reference: Abowd et al. (2023), The 2010 census confidentiality protections failed,
doi:10.48550/arXiv.2312.11283.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import BadParameter
from sfumato.extras import missing_extra
from sfumato.progress import SILENT, Progress

__all__ = ["PublishedCounts", "ReconstructedAreas", "reconstruct_areas"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class PublishedCounts:
    """A published table of counts."""

    area: Ints
    """For each smallest area: the area of the table that it belongs to."""
    cell: Ints
    """For each combination of values: the cell of the table that counts it, or -1."""
    counts: Ints
    """(area of the table, cell)."""

    @classmethod
    def tabulate(cls, people: Ints, *, area: Ints, cell: Ints) -> PublishedCounts:
        """The table of people that are given as counts by smallest area and combination."""
        counts = np.zeros((int(area.max()) + 1, int(cell.max()) + 1), dtype=np.int64)
        inside = np.flatnonzero(cell >= 0)
        np.add.at(counts, (area[:, None], cell[None, inside]), people[:, inside])
        return cls(area=area, cell=cell, counts=counts)


@dataclass(frozen=True, kw_only=True)
class ReconstructedAreas:
    """One list of people that agrees with all published tables."""

    counts: Ints
    """(smallest area, combination): numbers of people."""
    solved: npt.NDArray[np.bool_]
    """By smallest area: whether a list of people was found within the effort. If not, its counts are zero."""


def reconstruct_areas(
    tables: Sequence[PublishedCounts], *, effort: float = 20.0, progress: Progress = SILENT
) -> ReconstructedAreas:
    """Find people that agree with all tables, region by region.

    A region is a set of areas that no table connects with others. ``effort`` limits the search in each region, in the
    solver's deterministic seconds, so that the result does not depend on the machine. Needs the extra ``audit``.
    """
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise missing_extra("audit", "ortools", needed_by="reconstruction of tables") from None
    areas, combinations = len(tables[0].area), len(tables[0].cell)
    if any(len(one.area) != areas or len(one.cell) != combinations for one in tables):
        raise BadParameter("All tables are about the same smallest areas and combinations of values.")
    counts, solved = np.zeros((areas, combinations), dtype=np.int64), np.zeros(areas, dtype=np.bool_)
    region = _regions(tables)
    with progress.task("reconstructing", int(region.max()) + 1) as tick:
        for number in range(int(region.max()) + 1):
            own = np.flatnonzero(region == number)
            found = _solve(cp_model, tables, own, effort)
            if found is not None:
                counts[own], solved[own] = found, True
            tick(1)
    return ReconstructedAreas(counts=counts, solved=solved)


def _regions(tables: Sequence[PublishedCounts]) -> Ints:
    """Connected areas: two areas that a table adds up belong together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count, lines, nodes, start = len(tables[0].area), [], [], len(tables[0].area)
    for one in tables:
        lines.append(np.arange(count))
        nodes.append(start + one.area)
        start += int(one.area.max()) + 1
    ends = np.concatenate(lines), np.concatenate(nodes)
    _, label = connected_components(coo_array((np.ones(len(ends[0])), ends), shape=(start, start)), directed=False)
    return np.unique(label[:count], return_inverse=True)[1].astype(np.int64)


def _solve(cp: Any, tables: Sequence[PublishedCounts], own: Ints, effort: float) -> Ints | None:
    """Counts of the areas of a region, or None."""
    most = np.full((len(own), len(tables[0].cell)), np.iinfo(np.int64).max)
    for one in tables:
        inside = np.flatnonzero(one.cell >= 0)
        shown = one.counts[one.area[own][:, None], one.cell[None, inside]]
        most[:, inside] = np.minimum(most[:, inside], shown)
    if (most == np.iinfo(np.int64).max).any():
        raise BadParameter("Some combination is in no table.", fix="Add a table that counts everybody.")
    model = cp.CpModel()
    places = [(int(a), int(c)) for a, c in np.argwhere(most > 0)]
    unknown = {place: model.new_int_var(0, int(most[place]), "") for place in places}
    for one in tables:
        terms: dict[tuple[int, int], list[Any]] = {}
        for (a, c), variable in unknown.items():
            if one.cell[c] >= 0:
                terms.setdefault((int(one.area[own[a]]), int(one.cell[c])), []).append(variable)
        for area in np.unique(one.area[own]):
            for cell in np.flatnonzero(one.counts[area]):
                model.add(sum(terms.get((int(area), int(cell)), [])) == int(one.counts[area, cell]))
    solver = cp.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = effort
    if solver.solve(model) not in (cp.OPTIMAL, cp.FEASIBLE):
        return None
    found = np.zeros(most.shape, dtype=np.int64)
    for place, variable in unknown.items():
        found[place] = solver.value(variable)
    return found
