"""Disclosure risk of a file of any size, computed from its equivalence classes instead of sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sfumato.attacks import AnyColumns, Arm, AttributeLinkage, Discloses, Linkage, Outcome
from sfumato.data import scan
from sfumato.data.sql_quoting import quoted_name
from sfumato.dataset import Role, Schema
from sfumato.errors import NotApplicable
from sfumato.evaluation.file_columns import file_columns
from sfumato.measures import ClassSizes, Prosecutor, Uniqueness
from sfumato.measures.base import MeasureResult

__all__ = ["class_attacks", "class_measures", "count_file_classes"]

_TRUTH = "class sizes of the whole file"
_EMPTY = "Every record was suppressed: the release has no rows."


@dataclass(frozen=True, kw_only=True)
class FileClasses:
    """Equivalence classes of a masked file, without suppressed rows."""

    count: int = 0
    rows: int = 0
    smallest: int = 0
    unique: int = 0
    """Rows that are alone in their class."""


@dataclass(frozen=True, kw_only=True)
class SecretCounts:
    """A sensitive column inside the classes. Rows without a value are left out."""

    rows: int
    common_in_class: int
    """Rows that hold the most frequent value of their class."""
    common: int
    """Rows that hold the most frequent value of the file."""


def count_file_classes(path: Path, quasi: Sequence[str]) -> FileClasses:
    """Count the equivalence classes of a written file by one GROUP BY.

    Rows that show ``*`` in every quasi-identifier are suppressed and form no class, unless all rows do.
    """
    names, hidden = _grouping(quasi)
    inner = f"SELECT count(*) AS n, {hidden} AS hidden FROM {{source}} GROUP BY {names}"
    count, rows, smallest, unique = _row(
        path,
        "SELECT count(*), coalesce(sum(n), 0), coalesce(min(n), 0), coalesce(sum(n) FILTER (n = 1), 0) "
        f"FROM ({inner} QUALIFY NOT hidden OR count(*) OVER () = 1)",
    )
    return FileClasses(count=count, rows=rows, smallest=smallest, unique=unique)


def count_file_secret(path: Path, quasi: Sequence[str], secret: str) -> SecretCounts:
    """Count the values of a sensitive column within the equivalence classes, by one GROUP BY."""
    names, hidden = _grouping(quasi)
    value = quoted_name(secret)
    counted = (
        f"SELECT {names}, {value} AS secret, count(*) AS n, {hidden} AS hidden FROM {{source}} "
        f"WHERE {value} IS NOT NULL GROUP BY {names}, {value}"
    )
    rows, common_in_class, common = _row(
        path,
        f"WITH counted AS ({counted}), "
        "kept AS (SELECT * FROM counted WHERE NOT hidden OR (SELECT bool_and(hidden) FROM counted)), "
        f"classes AS (SELECT max(n) AS most, sum(n) AS n FROM kept GROUP BY {names}) "
        "SELECT coalesce((SELECT sum(n) FROM classes), 0), coalesce((SELECT sum(most) FROM classes), 0), "
        "coalesce((SELECT max(n) FROM (SELECT sum(n) AS n FROM kept GROUP BY secret)), 0)",
    )
    return SecretCounts(rows=rows, common_in_class=common_in_class, common=common)


def class_attacks(path: Path, schema: Schema, manifest: Mapping[str, Any]) -> tuple[Outcome | NotApplicable, ...]:
    """The expected success of ``linkage``, ``attribute-linkage`` and ``any-columns`` on a file whose values are true.

    An attacker who knows all quasi-identifiers of somebody in the release and picks one of the matching rows is right
    with probability 1 / class size, so the expected risk is the number of classes divided by the number of rows. An
    attacker who guesses the most frequent sensitive value of the class is right for the rows that hold it. Both are
    upper bounds where classes overlap. For altered values they say nothing, and the attacks do not apply.
    """
    released = list(scan(path).columns)
    quasi = tuple(name for name in schema.names(Role.QUASI) if name in released)
    altered = _altered(manifest)
    classes = count_file_classes(path, quasi) if quasi else FileClasses()
    outcomes = [_linkage(classes, quasi, altered)]
    for secret in schema.names(Role.SENSITIVE):
        if secret in released and quasi and classes.rows:
            outcomes.append(_attribute_linkage(path, quasi, secret, altered))
    if altered is None:
        outcomes.append(_refused(AnyColumns.part_name(), Discloses.IDENTITY, _needs_sample("columns")))
    else:
        outcomes += file_columns(path, [name for name in released if name not in altered], _TRUTH)
    if schema.unit is None:
        return tuple(outcomes)
    return tuple(replace(item, counts="rows") if isinstance(item, Outcome) else item for item in outcomes)


def class_measures(path: Path, schema: Schema) -> tuple[MeasureResult, ...]:
    """Measures that follow from the class sizes of a file."""
    released = list(scan(path).columns)
    quasi = [name for name in schema.names(Role.QUASI) if name in released]
    classes = count_file_classes(path, quasi) if quasi else FileClasses()
    values = {
        ClassSizes.part_name(): float(classes.smallest),
        Uniqueness.part_name(): classes.unique / max(classes.rows, 1),
        Prosecutor.part_name(): classes.count / max(classes.rows, 1),
    }
    reason = "" if classes.rows else _EMPTY if quasi else "The release has no quasi-identifier column."
    return tuple(
        MeasureResult(measure=name, value=None if reason else value, reason=reason) for name, value in values.items()
    )


def _linkage(classes: FileClasses, quasi: tuple[str, ...], altered: frozenset[str] | None) -> Outcome | NotApplicable:
    if not quasi:
        return _refused(Linkage.part_name(), Discloses.IDENTITY, "The release has no quasi-identifier column.")
    if not classes.rows:
        return _refused(Linkage.part_name(), Discloses.IDENTITY, _EMPTY)
    if altered is None or altered & set(quasi):
        return _refused(Linkage.part_name(), Discloses.IDENTITY, _needs_sample("quasi-identifiers"))
    return Outcome(
        attack=Linkage.part_name(),
        discloses=Discloses.IDENTITY,
        main=Arm(hits=classes.count, trials=classes.rows),
        baseline=Arm(hits=1, trials=classes.rows),
        computed=True,
        claims=classes.rows,
        knows=quasi,
        truth=_TRUTH,
        threat="An attacker who knows a person's quasi-identifiers picks one of the released rows that match.",
    )


def _attribute_linkage(
    path: Path, quasi: tuple[str, ...], secret: str, altered: frozenset[str] | None
) -> Outcome | NotApplicable:
    name = AttributeLinkage.part_name()
    if altered is None or altered & {*quasi, secret}:
        return _refused(name, Discloses.ATTRIBUTE, _needs_sample(f"`{secret}` or quasi-identifiers"))
    counts = count_file_secret(path, quasi, secret)
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


def _grouping(quasi: Sequence[str]) -> tuple[str, str]:
    """The columns of the GROUP BY, and the condition of a suppressed row."""
    names = [quoted_name(name) for name in quasi]
    return ", ".join(names), " AND ".join(f"CAST({name} AS VARCHAR) IS NOT DISTINCT FROM '*'" for name in names)


def _row(path: Path, statement: str) -> tuple[int, ...]:
    source = scan(path)
    with source.connect() as connection:
        row = connection.execute(statement.replace("{source}", source.expression)).fetchone()
    assert row is not None
    return tuple(map(int, row))
