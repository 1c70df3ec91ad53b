"""Compiled kernels: numba's ``njit``, with machine code kept between runs wherever a folder can be written.

numba keeps compiled code beside the source or in the user's cache folder (``XDG_CACHE_HOME``), and raises while a
module is imported if neither can be written, as on a server with a read-only installation and no home folder. A cache
only saves time: where there is none, or it is full or damaged, kernels are compiled in each process. numba itself is
imported by the first call of a kernel: most commands define kernels and call none.
"""

from __future__ import annotations

import contextlib
import pickle
from collections.abc import Callable, Iterator
from functools import update_wrapper
from threading import Lock
from typing import Any, Generic, TypeVar, cast

Result = TypeVar("Result")

_lock = Lock()
"""Two threads that call a kernel for the first time share one dispatcher, and compile it once."""


class _Kernel(Generic[Result]):
    """A function that numba compiles when it is called first, from Python or from another kernel."""

    def __init__(self, function: Callable[..., Result], options: dict[str, object]) -> None:
        update_wrapper(self, function)
        self._options = options
        self._compiled: object = None

    @property
    def dispatcher(self) -> Any:
        """numba's dispatcher, or the function itself under NUMBA_DISABLE_JIT."""
        if self._compiled is None:
            with _lock:
                self._compiled = self._compiled or _dispatcher(self.__wrapped__, self._options)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """The type numba gives to a global or an argument: that of the dispatcher, so kernels call kernels."""
        return self.dispatcher._numba_type_

    def __call__(self, *args: Any) -> Result:
        return cast("Result", self.dispatcher(*args))

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def _dispatcher(function: Callable[..., Result], options: dict[str, Any]) -> Any:
    import numba
    from numba.core.caching import FunctionCache

    class KernelCache(FunctionCache):
        """The cache of one kernel. A failure to read or write it counts as an empty one."""

        @contextlib.contextmanager
        def _guard_against_spurious_io_errors(self) -> Iterator[None]:
            with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
                yield

    dispatcher: Any = numba.njit(**options)(function)
    # numba raises RuntimeError if no folder can be written. With NUMBA_DISABLE_JIT it returns the function itself.
    with contextlib.suppress(RuntimeError):
        if dispatcher is not function:
            dispatcher._cache = KernelCache(function)  # type: ignore[no-untyped-call]
    return dispatcher


def kernel(**options: Any) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Compile the decorated function to machine code. ``options`` are those of ``numba.njit``, except ``cache``."""
    return lambda function: cast("Callable[..., Result]", _Kernel(function, options))
