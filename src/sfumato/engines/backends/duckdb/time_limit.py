"""Time limit of statements: one thread interrupts those that run too long, or whose question was cancelled."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from sfumato.engines.cancellation import interruptible

_AGAIN = 0.1


class TimeLimit:
    """Interrupts a statement that runs longer than a number of seconds, repeatedly until it ends: a statement that is
    still being planned ignores the first interrupt.

    The thread starts with a statement and sleeps until the running statement is over time. It ends when it wakes and
    no statement runs, or when the limit is garbage-collected. A thread per statement would cost two context switches
    each time.
    """

    def __init__(self, seconds: float, interrupt: Callable[[], object]) -> None:
        self._seconds = seconds
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._until: float | None = None
        self._watched = False
        self._wake = threading.Event()

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Watch one statement. Statements must not overlap."""
        with self._lock:
            self._until = monotonic() + self._seconds
            begin, self._watched = not self._watched, True
        if begin:
            watched = weakref.ref(self), self._wake, self._seconds
            threading.Thread(target=_watch, args=watched, daemon=True).start()
        try:
            with interruptible(self._give_up):
                yield
        finally:
            with self._lock:
                self._until = None

    def _give_up(self) -> None:
        """The time of the statement that runs is over now."""
        with self._lock:
            self._until = monotonic()
        self._wake.set()

    def look(self) -> float | None:
        """Seconds until the next check; None if no statement runs."""
        with self._lock:
            if self._until is None:
                self._watched = False
                return None
            left = self._until - monotonic()
            if left > 0:
                return left
            self._interrupt()
            return _AGAIN


def _watch(limit: weakref.ref[TimeLimit], wake: threading.Event, pause: float | None) -> None:
    while pause is not None:
        wake.wait(pause)
        wake.clear()
        held = limit()
        pause = None if held is None else held.look()
        del held
