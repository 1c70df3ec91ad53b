"""Cancellation of a question: the statement that an engine runs for it is interrupted, on any engine.

A question is answered in one thread. The thread says by :func:`cancellable` which cancellation its question has, and
an engine says by :func:`interruptible` how the statement that it runs ends. What was charged stays charged.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Interrupted(Exception):
    """The question was cancelled before its next statement began."""


class Cancellation:
    """Ends the statements of one question, those that run and those that would follow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interrupt: Callable[[], object] | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Interrupt the statement that runs; no further one begins."""
        with self._lock:
            self.cancelled = True
            if self._interrupt is not None:
                self._interrupt()

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Iterator[None]:
        with self._lock:
            if self.cancelled:
                raise Interrupted
            self._interrupt = interrupt
        try:
            yield
        finally:
            # An interrupt that is under way is waited for: it must not hit the statement of another question.
            with self._lock:
                self._interrupt = None


_CURRENT: ContextVar[Cancellation | None] = ContextVar("cancellation", default=None)


@contextmanager
def cancellable(cancellation: Cancellation) -> Iterator[None]:
    """What this thread asks of engines can be cancelled."""
    token = _CURRENT.set(cancellation)
    try:
        yield
    finally:
        _CURRENT.reset(token)


@contextmanager
def interruptible(interrupt: Callable[[], object]) -> Iterator[None]:
    """While a statement of an engine runs: ``interrupt`` ends it. Statements of one question do not overlap."""
    current = _CURRENT.get()
    if current is None:
        yield
        return
    with current.interruptible(interrupt):
        yield
