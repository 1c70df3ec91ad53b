"""The contract of a demo: one class per story in ``demos/stories``, told on a terminal in under a minute."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

from sfumato.params import Part
from sfumato.progress import SILENT, Progress

__all__ = ["Say", "Story"]

Say = Callable[[str], None]
"""Print one paragraph of the story (Rich markup)."""


class Story(Part):
    """A demo that makes its own data, deterministic by seed, and leaves its files in a folder to look at."""

    suffix = "Demo"

    seed: int = 7
    """Repeats the story exactly."""

    @abstractmethod
    def tell(self, folder: Path, say: Say, progress: Progress = SILENT) -> dict[str, object]:
        """Run the story; the returned figures are what ``--json`` prints."""
