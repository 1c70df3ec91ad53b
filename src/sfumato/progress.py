"""Progress reporting for long-running work.

Work takes a :class:`Progress` listener and reports to it. The functions of ``import sfumato`` take :data:`AUTO` by
default, which shows progress bars in a notebook and nothing elsewhere; :data:`SILENT` shows nothing. A listener that
also stops the work is a :class:`~sfumato.deadline.Deadline`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import Any, Protocol

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


def _shell() -> object:
    """The running IPython shell, or None. IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel."""
    return hasattr(_shell(), "kernel")


class NotebookProgress:
    """Progress bars below a notebook cell, one line per nested task. They disappear when the work is done."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, every: float = 0.2) -> None:
        self._clock, self._every = clock, every
        self._open: list[_Bar] = []
        self._shown: Any = None
        self._cell: int | None = None
        self._last = 0.0

    @contextmanager
    def task(self, title: str, total: float | None) -> Iterator[Tick]:
        bar = _Bar(title, total, self._clock)
        self._open.append(bar)
        self._draw(at_once=True)

        def advance(units: float) -> None:
            bar.done += units
            self._draw()

        try:
            yield advance
        finally:
            self._open.remove(bar)
            self._draw(at_once=True)

    def _draw(self, *, at_once: bool = False) -> None:
        from IPython.display import HTML, display

        if not at_once and self._clock() - self._last < self._every:
            return
        self._last = self._clock()
        page = HTML("".join(bar.html() for bar in self._open))  # type: ignore[no-untyped-call]
        cell = getattr(_shell(), "execution_count", None)
        if self._shown is None or cell != self._cell:  # one display for all tasks of a cell
            self._cell = cell
            self._shown = display(page, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._shown.update(page)


class _Bar:
    """One running task."""

    def __init__(self, title: str, total: float | None, clock: Callable[[], float]) -> None:
        self.title, self.total, self.done = title, total, 0.0
        self._clock, self._started = clock, clock()

    def html(self) -> str:
        spent = self._clock() - self._started
        share = min(1.0, self.done / self.total) if self.total else 0.0
        extent = f' value="{share:.3f}" max="1"' if self.total else ""
        left = f", about {spent / share - spent:.0f} s left" if 0 < share < 1 and spent > 1 else ""
        return f"<div>{escape(self.title)} <progress{extent}></progress> <small>{spent:.0f} s{left}</small></div>"


class _Auto:
    """Progress bars in a notebook, unless ``SFUMATO_PROGRESS=0``; nothing elsewhere."""

    def __init__(self) -> None:
        self._notebook: NotebookProgress | None = None

    def task(self, title: str, total: float | None) -> AbstractContextManager[Tick]:
        if os.environ.get("SFUMATO_PROGRESS") == "0" or not in_notebook():
            return SILENT.task(title, total)
        self._notebook = self._notebook or NotebookProgress()
        return self._notebook.task(title, total)


AUTO: Progress = _Auto()
"""The default of the functions of ``import sfumato``: progress bars in a notebook, nothing elsewhere."""
