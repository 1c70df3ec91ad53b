"""Packages that are verbs: ``tacit.protect`` is the package of masking methods and, called, the verb itself."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


class _Verb(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        verbs = importlib.import_module("tacit.verbs")
        return getattr(verbs, self.__name__.rpartition(".")[2])(*args, **kwargs)


def make_callable(name: str) -> None:
    """Let the package ``name`` be called; the call goes to the function of the same name in :mod:`tacit.verbs`."""
    sys.modules[name].__class__ = _Verb
