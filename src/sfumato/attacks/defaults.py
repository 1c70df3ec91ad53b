"""Which attacks to run when nobody named any: those that any release must stand, and those its methods invite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from sfumato.attacks.base import Attack, Discloses, View
from sfumato.attacks.evaluation.households import household_of
from sfumato.attacks.scenario import AttackScenario
from sfumato.attacks.string_similarity import free_text
from sfumato.masking.base import method_of
from sfumato.registry import registry

__all__ = ["default_attacks"]

_NEAR = 0.05
"""How near a guess of an amount must come, as a share of it: noise of a cent hides no salary."""
_FEW = 20
_CODES = 100
"""A number with at most so many values (more for whole numbers, which are often codes) is found out when it is guessed
exactly."""

_TOGETHER = 10_000
"""Up to how many rows everybody is given one at once unasked."""
_WIDEST = 25
"""Over how many numbers per person a distance is learned unasked."""


def _amount(values: pl.Series, released: pl.Series) -> bool:
    """Whether a guess that comes near tells as much as one that is right; a released fraction is no code."""
    few = _CODES if values.dtype.is_integer() and not released.dtype.is_float() else _FEW
    return values.dtype.is_numeric() and values.n_unique() > few


def default_attacks(scenario: AttackScenario) -> tuple[Attack, ...]:
    """A sensible set for this release.

    Linkage, also of whole households where the release tells them, and one attribute attack per sensitive column (one
    by a model where known columns were perturbed, one by simulation where a method that can be run again moved known
    columns or the sensitive one), distance linkage where numbers are known or nothing can be looked up, everybody given
    a row at once where values were or may have been perturbed (up to 10,000 rows), singling out where no row can be
    judged to be somebody's, membership where people outside are given, and every attack that exploits a published step.
    An amount counts as found out when the guess is within 5 % of it. Where numbers may have been perturbed and it is
    known whose rows are whose, distances are learned as well: from the people sought (the worst case), and from three
    in ten others (an intruder who has found some already).
    """
    found = registry("attack")
    chosen: list[Attack] = []

    def add(name: str, **parameters: object) -> None:
        if name in found:
            part = found.get(name).build(parameters)
            assert isinstance(part, Attack)
            chosen.append(part)

    released = scenario.release.table
    steps = tuple(scenario.release.manifest.get("steps", ()))
    known = tuple(name for name in (scenario.knows or scenario.original.quasi) if name in released.columns)
    exact = View(release=scenario.release, targets=released.frame.clear(), knows=known).untouched
    together = _together(scenario, known, exact, steps)
    if exact or not known:
        add("linkage")
        if any(method_of(step).adds_rows for step in steps):
            add("counterfeits")
        if household_of(scenario.original, released.columns) is not None:
            add("household-linkage")
    for name in scenario.original.sensitive:
        if name in released.columns and name not in known:
            near = {"tolerance": _NEAR} if _amount(scenario.original.table.column(name), released.column(name)) else {}
            if exact:
                add("attribute-linkage", secret=name, **near)
            if len(exact) < len(known):
                add("model-inference", secret=name, **near)
            if _moved(scenario, {*known, name}):
                add("simulation-inference", secret=name, **near)
            for by in together if "likelihood" not in together else ("values", "likelihood"):
                add("assignment-inference", secret=name, by=by, **near)
    numeric = [name for name in known if released.column(name).dtype.is_numeric()]
    if numeric or (known and not exact):
        add("distance-linkage")
    for by in together:
        add("assignment", by=by)
    held = scenario.original.table
    if any(free_text(held.column(name), released.column(name)) for name in known if name in held.columns):
        # Names may be written differently in the file of somebody who looks them up.
        add("probabilistic-linkage")
    if known and (scenario.made_up or (scenario.release_row is None and not scenario.truthful)):
        # No row can be called anybody's, or nobody knows whose: copies of people show in descriptions that fit one.
        add("singling-out")
    if scenario.control is not None:
        add("membership")
    for kind in found:
        # Those that seek a secret were chosen above, one for each sensitive column.
        if issubclass(kind, Attack) and kind.exploited(steps) and kind.discloses is not Discloses.ATTRIBUTE:
            add(kind.part_name())
    suited = _learnable(scenario, known)
    if len(numeric) > 1 and len(suited) > 1 and not scenario.made_up and (not steps or set(known) - set(exact)):
        columns = {} if suited == known else {"knows": suited}
        for share in (1.0, 0.3) if scenario.release_row is not None else ():
            add("learned-linkage", taught=share, **columns)
    return tuple(chosen)


def _together(
    scenario: AttackScenario, known: tuple[str, ...], exact: tuple[str, ...], steps: tuple[Mapping[str, Any], ...]
) -> tuple[str, ...]:
    """By what everybody is given a row at once: where values were, or may have been, perturbed, and rows are few."""
    if not known or scenario.release.table.rows > _TOGETHER or (steps and len(exact) == len(known)):
        return ()
    simulable = any(method_of(step).simulable for step in steps)
    return ("values", "ranks", "likelihood") if simulable else ("values", "ranks")


def _moved(scenario: AttackScenario, columns: set[str]) -> bool:
    """Whether a published step that can be simulated changed one of these columns."""
    return any(
        method_of(step).simulable and columns & set(step.get("columns", columns))
        for step in scenario.release.manifest.get("steps", ())
    )


def _learnable(scenario: AttackScenario, known: tuple[str, ...]) -> tuple[str, ...]:
    """The known columns that a distance can be learned over: numbers, and categories of few values.

    A category takes as many parameters as it has values, so numbers go first, and small categories before large ones.
    """
    original = scenario.original.table
    width = {
        name: 1 if kind.is_numeric() or kind.is_temporal() else original.column(name).n_unique()
        for name in known
        if name in original.columns
        for kind in (original.column(name).dtype,)
    }
    taken: list[str] = []
    room = _WIDEST
    for name in sorted(width, key=lambda name: width[name]):
        if width[name] <= room:
            taken.append(name)
            room -= width[name]
    return tuple(name for name in known if name in taken)
