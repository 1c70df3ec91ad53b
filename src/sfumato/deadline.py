"""Deadlines for long-running work: a progress listener that stops the work when its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from sfumato.errors import OutOfTime
from sfumato.progress import SILENT, Progress, Tick


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A progress listener that raises :class:`OutOfTime` at the first task or tick after its time is up.

    Work with a useful partial result catches the error or iterates over :func:`batches`; all other work has no result.
    The work is late by at most the time between two ticks.
    """

    until: float
    """The time to stop, as ``clock`` counts."""
    listener: Progress = SILENT
    """The listener that shows the progress."""
    clock: Callable[[], float] = time.monotonic

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.until - self.clock())

    def check(self) -> None:
        """Raise :class:`OutOfTime` if the time is up."""
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


def stopping(
    progress: Progress,
    seconds: float | None,
    *,
    clock: Callable[[], float] = time.monotonic,
    begin: float | None = None,
) -> Progress:
    """The listener with a deadline ``seconds`` after ``begin`` (now if left out); without seconds, the listener."""
    if seconds is None:
        return progress
    return Deadline(until=(clock() if begin is None else begin) + seconds, listener=progress, clock=clock)


def check_deadline(progress: Progress) -> None:
    """Raise :class:`OutOfTime` if there is a deadline and it has passed. For steps of work that have no ticks."""
    if isinstance(progress, Deadline):
        progress.check()


def seconds_left(progress: Progress, most: float) -> float:
    """The time limit for a solver: ``most`` seconds, or the seconds left if these are fewer.

    >>> seconds_left(Deadline(until=30.0, clock=lambda: 29.0), 60.0), seconds_left(SILENT, 60.0)
    (1.0, 60.0)
    """
    return min(most, progress.left) if isinstance(progress, Deadline) else most


def split_deadline(progress: Progress, parts: float) -> Progress:
    """The deadline for the next of ``parts`` equal parts of the work; a listener without a deadline is returned as is.

    Call it before each part: time that an earlier part did not use is divided among the later ones.

    >>> early = split_deadline(Deadline(until=30.0, clock=lambda: 10.0), 4)
    >>> early.until
    15.0
    """
    if isinstance(progress, Deadline):
        return replace(progress, until=min(progress.until, progress.clock() + progress.left / parts))
    return progress


def quiet(progress: Progress) -> Progress:
    """The same deadline without progress reports, for small work that is repeated many times."""
    return replace(progress, listener=SILENT) if isinstance(progress, Deadline) else SILENT


def batches(progress: Progress, title: str, total: int, size: int = 1) -> Iterator[slice]:
    """Slices of ``total`` items in order, ``size`` at a time. At the deadline they end early, without an error.

    >>> [part.stop for part in batches(SILENT, "counting", 5, 2)]
    [2, 4, 5]
    """
    with suppress(OutOfTime), progress.task(title, total) as tick:
        for start in range(0, total, max(1, size)):
            stop = min(total, start + max(1, size))
            yield slice(start, stop)
            tick(stop - start)
