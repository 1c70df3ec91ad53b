"""Base class of demos. Each module in ``demos/parts`` is one demo, which runs on a terminal in under a minute."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

from sfumato.params import Part
from sfumato.progress import SILENT, Progress

Say = Callable[[str], None]
"""Print one paragraph (Rich markup)."""


class Demo(Part):
    """A demo generates synthetic data from a seed, prints its text and writes its files to a folder."""

    suffix = "Demo"

    seed: int = 7
    """Seed of the synthetic data."""

    @abstractmethod
    def run(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        """Run the demo and return its figures, the document that ``--json`` prints."""
