"""Work on all cores: kernels that release the interpreter lock, called for slices in threads, and whole tasks.

Numba compiles a kernel of its own parallel loops two to four times as long, and two threads of a program that run such
kernels at the same time end the process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

_SMALLEST = 64
"""Minimum number of items per slice."""
_PER_CORE = 4
"""Slices per core, so that an expensive one does not keep the other cores waiting."""


def _cores() -> int:
    """Cores that this process may use; ``OMP_NUM_THREADS`` limits them, as for other numerical libraries."""
    stated = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if stated.isdecimal() and int(stated) > 0:
        return int(stated)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_slices(work: Callable[[slice], T], items: slice) -> list[T]:
    """The results of ``work`` for consecutive slices that cover ``items``, computed in threads.

    >>> sum(map_slices(lambda part: part.stop - part.start, slice(100, 1100)))
    1000
    """
    cores = _cores()
    count = items.stop - items.start
    pieces = min(_PER_CORE * cores, count // _SMALLEST) if cores > 1 else 1
    if pieces < 2:
        return [work(items)]
    edges = [items.start + piece * count // pieces for piece in range(pieces + 1)]
    with ThreadPoolExecutor(cores, thread_name_prefix="slices") as pool:
        return list(pool.map(work, map(slice, edges, edges[1:])))


def map_tasks(work: Callable[[S], T], items: Sequence[S]) -> Generator[T, None, None]:
    """The results of ``work`` for the items, in their order; as many items at a time as there are cores.

    For work that spends much of its time outside the interpreter. Each item sees the context variables of the caller.
    At an error no further item is started.

    >>> list(map_tasks(lambda number: number**2, [1, 2, 3]))
    [1, 4, 9]
    """
    cores = min(_cores(), len(items))
    if cores < 2:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(cores, thread_name_prefix="tasks")
    try:
        for result in [pool.submit(copy_context().run, work, item) for item in items]:
            yield result.result()
    finally:
        pool.shutdown(cancel_futures=True)
