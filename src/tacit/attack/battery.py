"""Which attacks to run when nobody named any: those that any release must stand, and those its methods invite."""

from __future__ import annotations

from tacit.attack.attack import Attack
from tacit.attack.scene import Scene
from tacit.registry import registry

__all__ = ["battery"]


def battery(scene: Scene) -> tuple[Attack, ...]:
    """A sensible set for this release.

    Linkage, one attribute attack per sensitive column, distance linkage where numbers are known, and every attack that
    exploits a published step.
    """
    found = registry("attack")
    chosen: list[Attack] = []

    def add(name: str, **parameters: object) -> None:
        if name in found:
            part = found.get(name).build(parameters)
            assert isinstance(part, Attack)
            chosen.append(part)

    add("linkage")
    for name in scene.original.sensitive:
        if name in scene.release.table.columns:
            add("attribute-linkage", secret=name)
    numeric = [
        name
        for name in (scene.knows or scene.original.quasi)
        if name in scene.release.table.columns and scene.release.table.column(name).dtype.is_numeric()
    ]
    steps = {step["step"] for step in scene.release.manifest.get("steps", ())}
    if numeric:
        add("distance-linkage")
    for kind in found:
        if issubclass(kind, Attack) and kind.exploits & steps:
            add(kind.part_name())
    return tuple(chosen)
