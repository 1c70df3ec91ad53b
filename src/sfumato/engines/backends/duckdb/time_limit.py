"""Statements are given up after a while, by one thread that watches all of them."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

__all__ = ["TimeLimit"]

_AGAIN = 0.1


class TimeLimit:
    """Interrupts whatever runs longer than so many seconds, again and again until it ends: what is still being planned
    does not hear the first time.

    The thread begins with a statement, sleeps until the one that runs then is over time, and ends when it wakes and
    nothing runs, or nobody holds the limit any more. With a thread of its own, every statement would have to wait for
    it to be scheduled, twice.
    """

    def __init__(self, seconds: float, interrupt: Callable[[], object]) -> None:
        self._seconds = seconds
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._until: float | None = None
        self._watched = False

    @contextmanager
    def watch(self) -> Iterator[None]:
        """One statement, and no other until it has ended."""
        with self._lock:
            self._until = monotonic() + self._seconds
            begin, self._watched = not self._watched, True
        if begin:
            threading.Thread(target=_watch, args=(weakref.ref(self), self._seconds), daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._until = None

    def look(self) -> float | None:
        """How long to sleep until the next look; None: nothing is left to watch."""
        with self._lock:
            if self._until is None:
                self._watched = False
                return None
            left = self._until - monotonic()
            if left > 0:
                return left
            self._interrupt()
            return _AGAIN


def _watch(limit: weakref.ref[TimeLimit], pause: float | None) -> None:
    sleeper = threading.Event()
    while pause is not None:
        sleeper.wait(pause)
        held = limit()
        pause = None if held is None else held.look()
        del held
