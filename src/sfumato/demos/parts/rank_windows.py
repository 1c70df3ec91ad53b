"""Demo: the transparency attack on rank swapping, one known record, the sets B_j and their intersection."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sfumato import datasets
from sfumato.demos.base import Demo, Say
from sfumato.progress import SILENT, Progress

KNOWN = (6, 7, 10, 2)
RANKS = 2


class RankWindowsDemo(Demo):
    """Rank swapping with p = 2 ranks on ten records: windows of four columns leave one record.

    The record x = (6, 7, 10, 2) is known. B_j holds the masked records whose j-th value lies within two ranks of x_j;
    the record of x is in every B_j. The data is that of the paper, so the seed has no effect.
    """

    reference = "Nin, Herranz, Torra (2008), doi:10.1016/j.datak.2007.07.006"

    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        masked = datasets.load("rankswap10-masked").frame
        sets = {
            name: _window(masked[name].to_numpy(), value) for name, value in zip(masked.columns, KNOWN, strict=True)
        }
        common = sorted(set.intersection(*map(set, sets.values())))
        shown = {name: [masked.row(row) for row in rows] for name, rows in sets.items()}
        say(f"\n[bold]The known record[/bold] is x = {KNOWN}; values were swapped within p = {RANKS} ranks.")
        for number, (name, rows) in enumerate(shown.items(), start=1):
            say(f"B_{number} ({name} near {KNOWN[number - 1]}): {len(rows)} records:  {_listed(rows)}")
        left = [masked.row(row) for row in common]
        say(f"\n[bold]In all four sets:[/bold]  {_listed(left)}")
        return {"known": KNOWN, "ranks": RANKS, "sets": shown, "intersection": left}


def _window(values: np.ndarray[tuple[int], np.dtype[np.int64]], known: int) -> list[int]:
    """Rows whose value is within so many ranks of the known one; all values differ."""
    ranks = values.argsort().argsort()
    own = int((values < known).sum())
    return np.flatnonzero(abs(ranks - own) <= RANKS).tolist()


def _listed(rows: list[tuple[int, ...]]) -> str:
    return " ".join(f"({', '.join(map(str, row))})" for row in rows)
