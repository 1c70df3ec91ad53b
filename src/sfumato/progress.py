"""Progress reporting for long-running work.

Work takes a :class:`Progress` listener and reports to it. The default, :data:`SILENT`, shows nothing. A listener that
also stops the work is a :class:`~sfumato.deadline.Deadline`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

__all__ = ["SILENT", "Progress", "Tick"]

Tick = Callable[[float], None]
"""Advance the current task by that many units."""


class Progress(Protocol):
    """A listener that shows the progress of tasks."""

    def task(self, title: str, total: float | None) -> AbstractContextManager[Tick]:
        """Open a task of ``total`` units (None: unknown) and return the function that advances it."""
        ...


class _Silent:
    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        yield lambda _units: None


SILENT: Progress = _Silent()
"""A listener that shows nothing."""
