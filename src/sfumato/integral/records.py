"""Records grouped into cells: records with the same codes are exchangeable, so one refit per cell answers for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sfumato.errors import BadParameter
from sfumato.integral.encoding import Codes, Encoding


@dataclass(frozen=True, kw_only=True, eq=False)
class Records:
    """A table as counts of cells. A cell is a combination of codes of all features and the label."""

    encoding: Encoding
    cells: Codes
    """Codes of each cell: features, then the label. Cells without a record may be part of it (see ``universe``)."""
    counts: Codes
    """Number of records in each cell."""
    cell_of_row: Codes

    @classmethod
    def of(cls, frame: pl.DataFrame, encoding: Encoding, *, universe: pl.DataFrame | None = None) -> Records:
        """Group the rows of a table.

        ``universe`` is a table of further records that might be inserted; the cells of the table always are.
        """
        codes = encoding.encode(frame)
        stacked = codes if universe is None else np.vstack([codes, encoding.encode(universe)])
        cells, inverse = np.unique(stacked, axis=0, return_inverse=True)
        own = inverse.ravel()[: len(codes)]
        return cls(encoding=encoding, cells=cells, counts=np.bincount(own, minlength=len(cells)), cell_of_row=own)

    def __len__(self) -> int:
        return int(self.counts.sum())

    @property
    def features(self) -> Codes:
        """Codes of the features of each cell."""
        return self.cells[:, : len(self.encoding.features)]

    @property
    def labels(self) -> Codes:
        """Code of the label of each cell."""
        if self.encoding.label is None:
            raise BadParameter("This model needs a label.", fix="Name the column to predict (`label`).")
        return self.cells[:, -1]

    def counts_of(self, rows: Sequence[int] | Codes) -> Codes:
        """How many of these rows lie in each cell."""
        chosen = np.asarray(rows, dtype=np.int64)
        if len(chosen) and (chosen.min() < 0 or chosen.max() >= len(self.cell_of_row)):
            raise BadParameter(f"The table has rows 1 to {len(self.cell_of_row)}.")
        if len(np.unique(chosen)) != len(chosen):
            raise BadParameter("A row is named twice.")
        return np.bincount(self.cell_of_row[chosen], minlength=len(self.cells))

    def without(self, rows: Sequence[int] | Codes) -> Codes:
        """The counts after deletion of these rows."""
        return self.counts - self.counts_of(rows)
