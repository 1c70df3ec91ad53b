"""Packages that are verbs: ``tacit.protect`` is the package of masking methods and, called, the verb itself."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


class _Verb(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def _function(self) -> Any:
        return getattr(importlib.import_module("tacit.verbs"), self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(self._function)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What ``help(tacit.protect)`` shows: how to call it, and then what else is in the package."""
        name = self.__name__
        return f"{name}{self.__signature__}\n\n{self._function.__doc__}\n\nThe package: {self.__dict__['__doc__']}"


def make_callable(name: str) -> None:
    """Let the package ``name`` be called; the call goes to the function of the same name in :mod:`tacit.verbs`."""
    sys.modules[name].__class__ = _Verb
