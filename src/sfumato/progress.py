"""How long work says how far it is and learns that it has to stop, without knowing who listens.

Nothing is shown unless a listener is passed in, and nothing is stopped unless that listener is a :class:`Deadline`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from sfumato.errors import OutOfTime

__all__ = [
    "SILENT",
    "Deadline",
    "Progress",
    "Tick",
    "batches",
    "check_deadline",
    "quiet",
    "seconds_left",
    "split_deadline",
]

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


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A listener that watches the clock: once time is up, the next task or tick raises :class:`OutOfTime`.

    Work that has something to show for the part it did catches that, or goes through :func:`batches`; whatever does
    not catch it has no result. How late it may get is the time between two ticks.
    """

    until: float
    """The moment, as ``clock`` counts."""
    listener: Progress = SILENT
    """Who is told how far the work is."""
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds left, never less than none."""
        return max(0.0, self.until - self.clock())

    def check(self) -> None:
        """Raise when time is up."""
        if self.clock() >= self.until:
            raise OutOfTime("Stopped: the time allowed was used up before there was a result.", fix="Allow more time.")

    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        self.check()
        with self.listener.task(title, total) as tick:

            def advance(units: float) -> None:
                tick(units)
                self.check()

            yield advance


def check_deadline(progress: Progress) -> None:
    """Raise :class:`OutOfTime` when there is a deadline and it has passed: between two pieces of work without ticks."""
    if isinstance(progress, Deadline):
        progress.check()


def seconds_left(progress: Progress, most: float) -> float:
    """For a solver with a time limit of its own: ``most`` seconds, or those that are left when they are fewer.

    >>> seconds_left(Deadline(until=30.0, clock=lambda: 29.0), 60.0), seconds_left(SILENT, 60.0)
    (1.0, 60.0)
    """
    return min(most, progress.left) if isinstance(progress, Deadline) else most


def split_deadline(progress: Progress, parts: float) -> Progress:
    """For work that comes in several parts: a deadline that leaves each of them its equal part of the time left.

    Called again before the next part, it passes on what an earlier one did not need. Without a deadline nothing
    changes.

    >>> early = split_deadline(Deadline(until=30.0, clock=lambda: 10.0), 4)
    >>> early.until
    15.0
    """
    if isinstance(progress, Deadline):
        return replace(progress, until=min(progress.until, progress.clock() + progress.left / parts))
    return progress


def quiet(progress: Progress) -> Progress:
    """The same deadline with nobody told: for small work that is done many times."""
    return replace(progress, listener=SILENT) if isinstance(progress, Deadline) else SILENT


def batches(progress: Progress, title: str, total: int, size: int = 1) -> Iterator[slice]:
    """Slices of ``total`` things in their order, ``size`` at a time; they end early, without an error, with the time.

    >>> [part.stop for part in batches(SILENT, "counting", 5, 2)]
    [2, 4, 5]
    """
    with suppress(OutOfTime), progress.task(title, total) as tick:
        for start in range(0, total, max(1, size)):
            stop = min(total, start + max(1, size))
            yield slice(start, stop)
            tick(stop - start)
