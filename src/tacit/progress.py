"""How long work says how far it is, without knowing who listens. Nothing is shown unless a listener is passed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["SILENT", "Progress", "Tick"]

Tick = Callable[[float], None]
"""Advance the current task by that many units."""


class Progress(Protocol):
    """Somebody who shows how far the work is."""

    def task(self, title: str, total: float | None) -> AbstractContextManager[Tick]:
        """Open a task of ``total`` units (None: unknown) and give the function that advances it."""
        ...


class _Silent:
    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        yield lambda _units: None


SILENT: Progress = _Silent()
