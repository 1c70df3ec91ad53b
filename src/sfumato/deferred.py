"""Deferred import of a library: ``import polars`` binds a stand-in, and its first use loads the library.

The command line defers Polars, which takes 0.17 CPU seconds to load and which a question in SQL never uses. ``import
sfumato`` defers nothing: the modules of a program that imports sfumato stay as they are.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from threading import RLock
from types import ModuleType

_lock = RLock()


class _Deferred(ModuleType):
    """Stands for a module in ``sys.modules`` until an attribute of it is read."""

    def __getattr__(self, attribute: str) -> object:
        # `import` itself looks for `__path__` when a submodule is imported: that loads the library, too.
        name = self.__name__
        with _lock:
            if sys.modules[name] is self:
                del sys.modules[name]
                self.__dict__.update(vars(importlib.import_module(name)))
        return getattr(sys.modules[name], attribute)


def defer(name: str) -> None:
    """Load the module ``name`` when it is first used. Does nothing if it is loaded, or not installed."""
    if name in sys.modules or (spec := importlib.util.find_spec(name)) is None:
        return
    stand_in = _Deferred(name)
    stand_in.__spec__ = spec
    sys.modules[name] = stand_in
