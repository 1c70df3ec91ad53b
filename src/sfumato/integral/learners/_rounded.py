"""Models with numbers that are rounded to multiples of a step before publication."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import Field

from sfumato.arrays import Floats
from sfumato.errors import BadParameter, SingularData
from sfumato.integral.learner import Learner
from sfumato.integral.records import Records


class RoundedLearner(Learner):
    """Base of learners whose parameters are rounded. Columns are scaled to [0, 1] by their public bounds."""

    uses_grid = True

    step: float = Field(gt=0, le=1)
    """Published parameters are multiples of this, in units of the range of a column."""

    def rounded(self, parameters: Floats) -> bytes:
        """Parameters as whole multiples of the step."""
        if not np.isfinite(parameters).all():
            raise SingularData("The columns depend on each other, so that there is no unique model.")
        return np.rint(parameters / self.step).astype(np.int64).tobytes()

    def parameters(self, model: bytes) -> Floats:
        """The published parameters."""
        return np.frombuffer(model, dtype=np.int64).astype(np.float64) * self.step

    def coarser(self) -> Iterator[Learner]:
        step = 2 * self.step
        while step <= 1:
            yield self.model_copy(update={"step": step})
            step *= 2

    def to_json(self, model: bytes) -> Any:
        return [float(f"{value:.12g}") for value in self.parameters(model)]


def scaled(records: Records) -> tuple[Floats, Floats]:
    """Features and label of each cell in units of their range; sums of products of up to 2**30 of them are exact."""
    columns = records.encoding.columns
    for column in columns:
        if column.grid is None and column is not records.encoding.label:
            raise BadParameter(
                f"Column `{column.name}` has no bounds.", fix="Give the public bounds of every numeric column."
            )
    steps = np.array([1.0 if column.grid is None else float(column.grid[2]) for column in columns])
    if any(column.grid is not None and column.grid[2] & (column.grid[2] - 1) for column in columns):
        raise BadParameter("The number of steps of a grid must be a power of two.", fix="Use 1024, the default.")
    values = records.cells / steps
    split = len(records.encoding.features)
    return values[:, :split], values[:, split:]
