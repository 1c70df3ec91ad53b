"""Parts are found, not listed: one file in the folder of its kind, or an entry point of another package.

The name of the file is the name of the part: ``rank_swap.py`` holds ``RankSwap``, which recipes and the CLI call
``rank-swap``. Names are read from the folder without importing anything, so listing them costs nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from sfumato.errors import UnknownPart, did_you_mean
from sfumato.params import Part

__all__ = ["KINDS", "Registry", "registry"]

KINDS: dict[str, tuple[str, ...]] = {
    "format": ("sfumato.data.formats",),
    "hierarchy": ("sfumato.schema.hierarchies",),
    "engine": ("sfumato.engines.backends",),
    "mechanism": ("sfumato.dp.mechanisms",),
    "method": ("sfumato.masking.methods",),
    "model": ("sfumato.masking.models",),
    "metric": ("sfumato.masking.metrics",),
    "attack": ("sfumato.attacks.record_linkage", "sfumato.attacks.transparency", "sfumato.attacks.inference"),
    "policy": ("sfumato.query.policies",),
    "query-attack": ("sfumato.attacks.query",),
    "measure": ("sfumato.measures.utility", "sfumato.measures.disclosure"),
    "demo": ("sfumato.demos.stories",),
}
"""Kind of part, and the packages whose modules are the parts of that kind."""

_ROOT = Path(__file__).parent


class Registry:
    """All parts of one kind, by name."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def _modules(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for package in KINDS[self.kind]:
            folder = _ROOT.joinpath(*package.split(".")[1:])
            for module in pkgutil.iter_modules([str(folder)]):
                if not module.name.startswith("_"):
                    found[module.name.replace("_", "-")] = f"{package}.{module.name}"
        return found

    def names(self) -> tuple[str, ...]:
        """Names of all parts of this kind, sorted; nothing is imported."""
        outside = (point.name for point in entry_points(group=f"sfumato.{self.kind}"))
        return tuple(sorted({*self._modules(), *outside}))

    def get(self, name: str) -> type[Part]:
        """The class of that name; an unknown name is refused with the nearest known one."""
        module = self._modules().get(name)
        if module is not None:
            for value in vars(importlib.import_module(module)).values():
                own = (
                    isinstance(value, type)
                    and issubclass(value, Part)
                    and f"{value.__module__}.".startswith(f"{module}.")
                )
                if own and value.part_name() == name:
                    return value  # type: ignore[no-any-return]
            raise UnknownPart(f"{module} defines no part called `{name}`.", kind=self.kind, name=name)
        for point in entry_points(group=f"sfumato.{self.kind}"):
            if point.name == name:
                found: type[Part] = point.load()
                return found
        raise UnknownPart(
            f"No {self.kind} is called `{name}`.", fix=did_you_mean(name, self.names()), kind=self.kind, name=name
        )

    def __iter__(self) -> Iterator[type[Part]]:
        return (self.get(name) for name in self.names())

    def __contains__(self, name: object) -> bool:
        return name in self.names()


@cache
def registry(kind: str) -> Registry:
    """The registry of a kind: ``registry("method").get("generalize")``."""
    if kind not in KINDS:
        raise UnknownPart(f"There is no kind of part called `{kind}`.", fix=did_you_mean(kind, KINDS), kind=kind)
    return Registry(kind)
