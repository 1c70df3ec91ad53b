"""Tables of a released graph as they were published, for independent checks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphFiles:
    """The CSV files of a release folder; None for a file that was not released."""

    nodes: pl.DataFrame | None = None
    """``node`` and the released attributes."""
    edges: pl.DataFrame | None = None
    """``source``, ``target``, and what is released about an edge."""
    clusters: pl.DataFrame | None = None
    """``cluster``, ``nodes`` (how many) and ``edges`` inside."""
    symmetry: pl.DataFrame | None = None
    """``node`` and ``image``."""

    @classmethod
    def read(cls, folder: Path) -> GraphFiles:
        """Read the files that are there."""
        files = {name: folder / f"{name}.csv" for name in ("nodes", "edges", "clusters", "symmetry")}
        return cls(**{name: pl.read_csv(file) for name, file in files.items() if file.is_file()})
