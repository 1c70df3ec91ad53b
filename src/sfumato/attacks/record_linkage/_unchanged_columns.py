"""Blocking by the columns that the masking left unchanged: only rows with the same values can belong to a person."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sfumato.attacks.base import View
from sfumato.data.row_codes import number_rows, value_codes
from sfumato.masking.base import method_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_APART = 1e6
"""Distance between rows of different blocks, far more than any difference of standardized values."""


def unchanged_columns(view: View) -> tuple[str, ...]:
    """The known columns that no published step names, if the masking is published and another column was changed.

    Empty for values of an external file, which may differ from those of the original.
    """
    if not view.steps or view.blanks_unknown:
        return ()
    changed: set[str] = set()
    for step in view.steps:
        changed.update(method_of(step).changed_columns(step, view.knows))
    if not changed & set(view.knows):
        return ()
    released = view.release.table
    return tuple(
        name
        for name in view.knows
        if name not in changed and view.targets.get_column(name).dtype == released.column(name).dtype
    )


def blocks(view: View, names: Sequence[str]) -> tuple[Ints, Ints]:
    """The number of the combination of values in these columns, of each target and of each release row."""
    count = view.targets.height
    if not names:
        return np.zeros(count, dtype=np.int64), np.zeros(view.release.table.rows, dtype=np.int64)
    frame = view.targets.select(names).vstack(view.release.table.frame.select(names))
    number = number_rows([value_codes(frame[name])[0] for name in names])[0].astype(np.int64)
    return number[:count], number[count:]


def apart(points: Floats, block: Ints) -> Floats:
    """The points with one more coordinate, so that points of other blocks are farther than any of the same block."""
    return np.column_stack([points, _APART * block])
