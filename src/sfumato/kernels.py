"""Compiled kernels: numba's ``njit``, with machine code kept between runs wherever a folder can be written.

numba keeps compiled code beside the source or in the user's cache folder (``XDG_CACHE_HOME``), and raises while a
module is imported if neither can be written, as on a server with a read-only installation and no home folder. A cache
only saves time: where there is none, or it is full or damaged, kernels are compiled in each process.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

__all__ = ["kernel"]

Result = TypeVar("Result")


class _KernelCache(FunctionCache):
    """The cache of one kernel. A failure to read or write it counts as an empty one."""

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            yield


def kernel(**options: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Compile the decorated function to machine code. ``options`` are those of ``numba.njit``, except ``cache``."""

    def compiled(function: Callable[..., Result]) -> Callable[..., Result]:
        dispatcher: Any = numba.njit(**options)(function)
        # numba raises RuntimeError if no folder can be written. With NUMBA_DISABLE_JIT it returns the function itself.
        with contextlib.suppress(RuntimeError):
            if dispatcher is not function:
                dispatcher._cache = _KernelCache(function)  # type: ignore[no-untyped-call]
        return cast("Callable[..., Result]", dispatcher)

    return compiled
