"""Building blocks of microaggregation: embed records in a space, group them, aggregate each group."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from pydantic import ConfigDict, Field

from sfumato.arrays import Floats
from sfumato.dataset import BoundHierarchy, Data, Kind
from sfumato.errors import BadParameter
from sfumato.field_docs import DocumentedModel
from sfumato.masking.methods._masking import Rows, numbers_of
from sfumato.masking.methods._mdav import mdav, v_mdav
from sfumato.masking.methods._univariate import optimal_univariate

Groups = npt.NDArray[np.int32]

_WIDEST = 4096
"""Maximum number of coordinates of a space; large categorical columns would exceed memory."""

_CELLS = 500_000_000
"""Most numbers a space may hold: 4 GB."""

NUMBER_LIKE = frozenset({Kind.INTEGER, Kind.NUMBER, Kind.DATE, Kind.DATETIME})


class ColumnGroup(DocumentedModel):
    """Columns that are microaggregated together, with a k of their own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Annotated[tuple[str, ...], Field(min_length=1)]
    """The columns of the group."""
    k: Annotated[int, Field(ge=2)]
    """Minimum number of records per group."""


def physical(series: pl.Series) -> pl.Series:
    """Dates as whole numbers; numbers as they are."""
    return series.to_physical() if series.dtype.is_temporal() else series


class RecordSpace:
    """The records of a stratum as points, so that Euclidean distance is the distance of the method.

    Numbers and dates are coordinates (standardized or raw). A category takes one coordinate per group of each level
    of its hierarchy, weighted so that two values whose groups first meet at level m of a hierarchy of height H lie
    m/H apart; without a hierarchy, equal values are 0 and different ones 1 apart.
    """

    def __init__(self, data: Data, names: tuple[str, ...], rows: Rows, *, standardize: bool) -> None:
        self.names = names
        numbers: list[Floats] = []
        indicators: list[tuple[npt.NDArray[np.int64], int, float]] = []
        for name in names:
            series = data.table.column(name).gather(rows)
            if data.kind(name) in NUMBER_LIKE:
                numbers.append(_scaled(numbers_of(physical(series)), standardize))
            else:
                indicators.extend(_indicators(data.bound_hierarchy(name), series))
        width = len(numbers) + sum(size for _, size, _ in indicators)
        if width > _WIDEST or width * len(rows) > _CELLS:
            most = min(_WIDEST, _CELLS // max(len(rows), 1))
            raise BadParameter(
                f"microaggregate: the categories of {', '.join(names)} need {width} coordinates, more than the {most} "
                f"that are possible for {len(rows)} records.",
                fix="Generalize the column with the most categories first, leave it out, or use strata.",
            )
        self.points = np.zeros((len(rows), width))
        for number, values in enumerate(numbers):
            self.points[:, number] = values
        first = len(numbers)
        for place, size, weight in indicators:
            self.points[np.arange(len(rows)), first + place] = weight
            first += size


def _scaled(values: Floats, standardize: bool) -> Floats:
    if not standardize:
        return values
    spread = values.std() if len(values) else 0.0
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def _indicators(hierarchy: BoundHierarchy, series: pl.Series) -> list[tuple[npt.NDArray[np.int64], int, float]]:
    """Per level below the root: which coordinate each record has, how many there are, and their weight."""
    codes, height = hierarchy.encode(series), max(hierarchy.height, 1)
    indicators = []
    for number, level in enumerate(hierarchy.levels[:-1] if hierarchy.height else hierarchy.levels):
        used, place = np.unique(level.codes[codes], return_inverse=True)
        share = ((number + 1) ** 2 - number**2) / height**2
        indicators.append((place.reshape(-1), len(used), float(np.sqrt(share / 2))))
    return indicators


def group_rows(
    points: Floats, k: int, algorithm: str, gamma: float, *, refine: bool = False, block: int | None = None
) -> Groups:
    """A group number for each point; groups have at least k members (fewer than 2k points: one group).

    With ``block``, at least 2k, the points are cut into blocks of at most so many along their first principal
    component, and no group crosses a cut.
    """
    if len(points) < 2 * k:
        return np.zeros(len(points), dtype=np.int32)
    if block is not None and len(points) > block:
        groups, found = np.empty(len(points), dtype=np.int32), 0
        order = np.argsort(_first_component(points), kind="stable")
        for piece in np.array_split(order, -(-len(points) // block)):  # each of at least half a block, so of k or more
            groups[piece] = found + group_rows(points[piece], k, algorithm, gamma, refine=refine)
            found = int(groups[piece].max()) + 1
        return groups
    groups = _first_groups(points, k, algorithm, gamma)
    if not refine:
        return groups
    from sfumato.masking.methods._exchange import refine_groups

    return refine_groups(points, groups, k)


def _first_groups(points: Floats, k: int, algorithm: str, gamma: float) -> Groups:
    match algorithm:
        case "mdav":
            return mdav(points, k)
        case "v-mdav":
            return v_mdav(points, k, gamma)
        case "projection":
            return _runs(_first_component(points), k)
        case "individual":
            return _runs(points[:, 0], k)
        case "optimal":
            order = np.argsort(points[:, 0], kind="stable")
            groups = np.empty(len(points), dtype=np.int32)
            groups[order] = optimal_univariate(points[order, 0], k)
            return groups
        case _:
            raise AssertionError(algorithm)


def _first_component(points: Floats) -> Floats:
    """Coordinates along the direction of the largest variance."""
    centred = points - points.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ directions[:, -1])


def _runs(values: Floats, k: int) -> Groups:
    """Runs of k neighbours in the order of the values; the last run takes what is left over."""
    groups = np.empty(len(values), dtype=np.int32)
    groups[np.argsort(values, kind="stable")] = np.minimum(np.arange(len(values)) // k, len(values) // k - 1)
    return groups


def aggregate(series: pl.Series, kind: Kind, groups: Groups, how: str, weights: Floats | None) -> pl.Series:
    """One value per group: mean or median of numbers and dates, the most frequent category (ties: the first)."""
    frame = pl.DataFrame({"group": groups, "value": series})
    if kind in NUMBER_LIKE:
        numbers = physical(series)
        if how == "median":
            middle = (
                frame.with_columns(value=numbers).group_by("group").agg(pl.col("value").sort().get((pl.len() - 1) // 2))
            )
            return middle.sort("group")["value"].cast(series.dtype)
        weight = np.ones(len(series)) if weights is None else weights
        total = np.bincount(groups, weight * numbers.cast(pl.Float64).to_numpy())
        means = pl.Series(series.name, total / np.bincount(groups, weight))
        return means.round().cast(numbers.dtype).cast(series.dtype) if series.dtype.is_temporal() else means
    counted = frame.group_by("group", "value").len().sort("group", "len", "value", descending=[False, True, False])
    return counted.group_by("group", maintain_order=True).first()["value"]


def common_ancestor(data: Data, name: str, rows: Rows, groups: Groups) -> pl.Series:
    """Per group the label at the lowest level of the hierarchy on which all its members agree, as text."""
    hierarchy = data.bound_hierarchy(name)
    codes = hierarchy.encode(data.table.column(name).gather(rows))
    count = int(groups.max()) + 1
    answer: list[str | None] = [None] * count
    open_ = np.ones(count, dtype=bool)
    for level in hierarchy.levels:
        here = level.codes[codes]
        low, high = np.full(count, len(level.labels)), np.full(count, -1)
        np.minimum.at(low, groups, here)
        np.maximum.at(high, groups, here)
        labels = level.labels.cast(pl.String).to_list()
        for group in np.flatnonzero(open_ & (low == high)):
            answer[group] = labels[low[group]]
        open_ &= low != high
    return pl.Series(name, answer, dtype=pl.String)


def memberships(points: Floats, groups: Groups, m: float, reach: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """For every record its nearest centroids, and its fuzzy membership d^(-2/(m-1)) in each, up to a factor."""
    from scipy.spatial import cKDTree

    sizes = np.bincount(groups)
    centres = np.stack([np.bincount(groups, points[:, j]) for j in range(points.shape[1])], axis=1) / sizes[:, None]
    reach = min(reach, len(centres))
    distance, near = cKDTree(centres).query(points, k=reach)
    distance, near = distance.reshape(len(points), reach), near.reshape(len(points), reach)
    # Memberships relative to the nearest centroid; a record that lies on a centroid belongs to that one alone.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(distance[:, :1] > 0, distance[:, :1] / distance, distance == 0)
    return near, ratio ** (2 / (m - 1))


def draw_centroids(points: Floats, groups: Groups, m: float, reach: int, columns: int, random: Any) -> list[Groups]:
    """For every column a group per record, drawn by its fuzzy membership."""
    near, membership = memberships(points, groups, m, reach)
    share = np.cumsum(membership, axis=1)
    draws = random.random((columns, len(points))) * share[:, -1]
    return [near[np.arange(len(points)), (share <= draw[:, None]).sum(axis=1)].astype(np.int32) for draw in draws]
