"""Disclosure risk of a file of any size, computed from its equivalence classes instead of sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.attacks import AnyColumns, Arm, AttributeLinkage, Discloses, Linkage, Outcome
from sfumato.data import scan
from sfumato.dataset import Role, Schema
from sfumato.errors import NotApplicable
from sfumato.evaluation.class_queries import ClassCounter, FileClasses, class_counter
from sfumato.evaluation.file_columns import file_columns
from sfumato.measures import ClassSizes, Prosecutor, Uniqueness
from sfumato.measures.base import MeasureResult

__all__ = ["class_attacks", "class_measures"]

_TRUTH = "class sizes of the whole file"
_EMPTY = "Every record was suppressed: the release has no rows."


def class_attacks(
    path: Path, schema: Schema, manifest: Mapping[str, Any], *, people: pl.Series | None = None
) -> tuple[Outcome | NotApplicable, ...]:
    """The expected success of ``linkage``, ``attribute-linkage`` and ``any-columns`` on a file whose values are true.

    An attacker who knows all quasi-identifiers of somebody in the release and picks one of the matching rows is right
    with probability 1 / class size, so the expected risk is the number of classes divided by the number of rows. Where
    people have several rows, ``people`` has the person of each row of the file, and identity is counted by people. An
    attacker who guesses the most frequent sensitive value of the class is right for the rows that hold it. Both are
    upper bounds where classes overlap. For altered values they say nothing, and the attacks do not apply.
    """
    released = list(scan(path).columns)
    quasi = tuple(name for name in schema.names(Role.QUASI) if name in released)
    altered = _altered(manifest)
    with class_counter(path, people) as counter:
        outcomes = [_linkage(counter, quasi, altered)]
        for secret in schema.names(Role.SENSITIVE):
            if secret in released and quasi and counter.classes(quasi).rows:
                outcomes.append(_attribute_linkage(counter, quasi, secret, altered))
        if altered is None:
            outcomes.append(_refused(AnyColumns.part_name(), Discloses.IDENTITY, _needs_sample("columns")))
        else:
            outcomes += file_columns(counter, [name for name in released if name not in altered], _TRUTH)
    if schema.unit is None:
        return tuple(outcomes)
    by_people = (Discloses.IDENTITY,) if people is not None else ()
    return tuple(
        replace(item, counts="rows") if isinstance(item, Outcome) and item.discloses not in by_people else item
        for item in outcomes
    )


def class_measures(path: Path, schema: Schema) -> tuple[MeasureResult, ...]:
    """Measures that follow from the class sizes of a file."""
    released = list(scan(path).columns)
    quasi = [name for name in schema.names(Role.QUASI) if name in released]
    with class_counter(path) as counter:
        classes = counter.classes(quasi) if quasi else FileClasses()
    values = {
        ClassSizes.part_name(): float(classes.smallest),
        Uniqueness.part_name(): classes.unique / max(classes.rows, 1),
        Prosecutor.part_name(): classes.count / max(classes.rows, 1),
    }
    reason = "" if classes.rows else _EMPTY if quasi else "The release has no quasi-identifier column."
    return tuple(
        MeasureResult(measure=name, value=None if reason else value, reason=reason) for name, value in values.items()
    )


def _linkage(counter: ClassCounter, quasi: tuple[str, ...], altered: frozenset[str] | None) -> Outcome | NotApplicable:
    if not quasi:
        return _refused(Linkage.part_name(), Discloses.IDENTITY, "The release has no quasi-identifier column.")
    found, people = counter.found(quasi)
    if not people:
        return _refused(Linkage.part_name(), Discloses.IDENTITY, _EMPTY)
    if altered is None or altered & set(quasi):
        return _refused(Linkage.part_name(), Discloses.IDENTITY, _needs_sample("quasi-identifiers"))
    return Outcome(
        attack=Linkage.part_name(),
        discloses=Discloses.IDENTITY,
        main=Arm(hits=found, trials=people),
        baseline=Arm(hits=1, trials=people),
        computed=True,
        claims=people,
        knows=quasi,
        truth=_TRUTH,
        threat="An attacker who knows a person's quasi-identifiers picks one of the released rows that match.",
    )


def _attribute_linkage(
    counter: ClassCounter, quasi: tuple[str, ...], secret: str, altered: frozenset[str] | None
) -> Outcome | NotApplicable:
    name = AttributeLinkage.part_name()
    if altered is None or altered & {*quasi, secret}:
        return _refused(name, Discloses.ATTRIBUTE, _needs_sample(f"`{secret}` or quasi-identifiers"))
    counts = counter.secret(quasi, secret)
    if not counts.rows:
        return _refused(name, Discloses.ATTRIBUTE, f"Column `{secret}` has no value.")
    return Outcome(
        attack=name,
        discloses=Discloses.ATTRIBUTE,
        main=Arm(hits=counts.common_in_class, trials=counts.rows),
        baseline=Arm(hits=counts.common, trials=counts.rows),
        computed=True,
        claims=counts.rows,
        knows=quasi,
        secret=secret,
        truth=_TRUTH,
        threat="An attacker who knows a person's quasi-identifiers guesses the most frequent sensitive value of the "
        "released rows that match.",
    )


def _refused(attack: str, discloses: Discloses, reason: str) -> NotApplicable:
    refusal = NotApplicable(reason)
    refusal.facts |= {"attack": attack, "discloses": str(discloses)}
    return refusal


def _needs_sample(what: str) -> str:
    return f"The values of {what} were altered, and the attack needs the rows: run `sfumato attack` on a sample."


def _altered(manifest: Mapping[str, Any]) -> frozenset[str] | None:
    """Columns that steps altered instead of coarsening them; None if a step does not name its columns."""
    altered: set[str] = set()
    for step in manifest.get("steps", ()):
        if step.get("truthful"):
            continue
        if "columns" not in step:
            return None
        altered.update(step["columns"])
    return frozenset(altered)
