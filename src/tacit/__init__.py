"""tacit: share data about people without giving the people away.

>>> import tacit
>>> proposal = tacit.propose(frame)                                # doctest: +SKIP
>>> done = tacit.protect(proposal.recipe(k=5), frame)              # doctest: +SKIP
>>> done.data                                                      # doctest: +SKIP
>>> tacit.attack(done)                                             # doctest: +SKIP
>>> done.save("release/")                                          # doctest: +SKIP
>>> tacit.session("hospital.yaml").ask("SELECT COUNT(*) FROM visits", epsilon=1)      # doctest: +SKIP
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # known to type checkers; `typing` takes longer to load than the rest of this module
    from typing import Any

__version__ = "0.1.0"

_EXPORTS = {
    "Recipe": "tacit.recipe",
    "Rng": "tacit.rng",
    "TacitError": "tacit.errors",
    "Protection": "tacit.verbs",
    "check": "tacit.verbs",
    "read": "tacit.data",
    "write": "tacit.data",
    "propose": "tacit.profile",
    "Session": "tacit.answer",
    "session": "tacit.verbs",
}
"""Names of the Python API and where they live; nothing is imported before it is asked for."""

_VERBS = ("protect", "attack", "measure", "study")
"""Packages that can also be called: ``tacit.protect(recipe, data)`` runs :func:`tacit.verbs.protect`."""

__all__ = ["__version__", *_EXPORTS, *_VERBS]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _EXPORTS:
        return getattr(importlib.import_module(_EXPORTS[name]), name)
    if name in _VERBS:
        return importlib.import_module(f"tacit.{name}")
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
