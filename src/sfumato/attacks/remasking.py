"""Remasking: the published steps rerun by the adversary on a file similar to the original."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from sfumato.attacks.base import View
from sfumato.attacks.features import points
from sfumato.attacks.nearest_neighbours import BoxTree
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import NotApplicable, OutOfTime, SfumatoError
from sfumato.masking.base import Context, Step, method_of
from sfumato.progress import SILENT, Progress
from sfumato.rng import Rng

WEAK_MASKING: Mapping[str, Mapping[str, object]] = {
    "microaggregate": {
        "groups": [
            {"columns": ["height", "income"], "k": 2},
            {"columns": ["rent"], "k": 2},
            {"columns": ["commute"], "k": 2},
        ]
    }
}
"""A step that protects almost nobody against attacks that rerun the published steps; for the contract tests."""

_NEIGHBOURS = 5
"""Synthetic records are interpolated between a record and one of this many nearest records."""


def runnable_steps(view: View) -> list[Step]:
    """The published steps that can be rerun on the known columns; refused if there are none."""
    steps = steps_on(view, (*view.knows, *companions(view)), perturbed=view.knows)
    if not steps:
        raise NotApplicable("No published step changes values, so there is nothing to simulate.", fix="Use `linkage`.")
    return steps


def steps_on(view: View, columns: tuple[str, ...], *, perturbed: Collection[str] | None = None) -> list[Step]:
    """The published steps that change one of the ``perturbed`` columns, restricted to ``columns``."""
    if not view.steps:
        raise NotApplicable("The masking steps are not published, or the attacker does not know them.")
    steps: list[Step] = []
    for step in view.steps:
        method = method_of(step)
        if not set(method.changed_columns(step, columns)) & set(perturbed or columns):
            continue
        if method.coarsens and step.get("truthful", False):
            continue
        try:
            part = method.build(method.restricted(step, columns))
        except SfumatoError as refusal:
            raise NotApplicable(f"The published step `{step['step']}` cannot be simulated: {refusal}") from None
        steps.append(part)
    return steps


def coarsened(view: View) -> frozenset[str]:
    """The known columns whose cells a truthful published step may have coarsened or suppressed."""
    columns: set[str] = set()
    for step in view.steps:
        if method_of(step).coarsens and step.get("truthful", False):
            columns.update(step.get("columns", view.knows))
    return frozenset(columns & set(view.knows))


def companions(view: View) -> tuple[str, ...]:
    """Released columns that are unknown to the adversary but were masked together with known ones.

    A rerun without them would give different groups.
    """
    columns: list[str] = []
    for step in view.steps:
        for names in method_of(step).joint_columns(step):
            if set(names) & set(view.knows):
                columns += [name for name in names if name not in view.knows and name in view.release.table.columns]
    return tuple(dict.fromkeys(columns))


def proxy(view: View) -> Data:
    """A file similar to the original: the targets if there are enough of them, else the release.

    Columns that were masked together with known ones are taken from the nearest row.
    """
    columns = (*view.knows, *companions(view))
    if view.targets.height >= max(200, view.release.table.rows // 2):
        return _dataset(view, _completed(view, columns), columns)
    return release_proxy(view, columns)


def _completed(view: View, columns: tuple[str, ...]) -> pl.DataFrame:
    """The targets, with the columns that the adversary does not know filled in from the nearest row."""
    missing = [name for name in columns if name not in view.knows]
    if not missing:
        return view.targets
    features = points(view)
    nearest = BoxTree.of(features.released).near(features.targets, 1)[0][:, 0]
    return pl.concat(
        [view.targets.select(view.knows), view.release.table.frame[nearest].select(missing)], how="horizontal"
    )


class RecordInterpolation:
    """Synthetic records, each interpolated between a record of a file and one of its nearest neighbours."""

    def __init__(self, people: pl.DataFrame) -> None:
        self._people = people
        self._names = [name for name in people.columns if people[name].dtype.is_numeric()]
        if not self._names or people.height == 1:
            self._names = []
            return
        # As floats, because differences of unsigned integers would wrap around.
        level = people.select(pl.col(self._names).cast(pl.Float64)).fill_null(np.nan).to_numpy()
        known = np.isfinite(level)
        size = np.abs(np.where(known, level, 0.0)).max(axis=0)
        unit = level / np.where(size > 0, size, 1.0)  # so that squares do not overflow
        middle = np.where(known, unit, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        unit = np.where(known, unit, middle)
        spread = unit.std(axis=0)
        scaled = unit / np.where(spread > 0, spread, 1.0)
        self._level = level
        self._near = BoxTree.of(scaled).near(scaled, _NEIGHBOURS + 1)[0][:, 1:]

    def draw(self, count: int, rng: Rng) -> pl.DataFrame:
        """That many records."""
        draw, level = rng.generator, self._level if self._names else None
        first = draw.integers(self._people.height, size=count)
        if level is None:
            return self._people[first]
        other = self._near[first, draw.integers(self._near.shape[1], size=count)]
        with np.errstate(over="ignore", invalid="ignore"):
            values = level[first] + (level[other] - level[first]) * draw.random((count, 1))
        kinds = self._people.schema
        return self._people[first].with_columns(
            _as_stored(pl.Series(name, values[:, index]), kinds[name]) for index, name in enumerate(self._names)
        )


def _as_stored(values: pl.Series, kind: pl.DataType) -> pl.Series:
    """The values in the type of the column; missing if they are not finite or out of its range."""
    finite = values.set(~values.is_finite(), None)
    return (finite.round() if kind.is_integer() else finite).cast(kind, strict=False)


def release_proxy(view: View, columns: tuple[str, ...]) -> Data:
    """The release in place of the original, for columns that the adversary does not know."""
    return _dataset(view, view.release.table.frame, columns)


def _dataset(view: View, frame: pl.DataFrame, columns: tuple[str, ...]) -> Data:
    schema = Schema(columns={name: Column(role=Role.QUASI) for name in columns})
    return Data(table=view.release.table.with_frame(frame.select(columns)), schema=schema)


def mask_again(
    data: Data, steps: list[Step], rng: Rng, progress: Progress = SILENT
) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Run the steps once; return the masked values and the origin of each row that has one."""
    frame, origin = run_steps(data, steps, rng, progress)
    kept = origin >= 0
    return frame.filter(pl.Series(kept)), origin[kept]


def run_steps(
    data: Data, steps: list[Step], rng: Rng, progress: Progress = SILENT
) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Run the steps once; return all rows, with -1 as the origin of synthetic ones."""
    origin = np.arange(data.rows, dtype=np.int64)
    for number, step in enumerate(steps):
        try:
            change = step.apply(data, Context(rng=rng.child(number), progress=progress))
        except OutOfTime:
            raise
        except SfumatoError as refusal:
            raise NotApplicable(
                f"The published step `{step.part_name()}` cannot be simulated on the known columns: {refusal}"
            ) from None
        if change.rows is not None:
            origin = np.where(change.rows >= 0, origin[change.rows], -1)
        data = Data(table=change.table, schema=data.schema)
    return data.table.frame, origin
