"""Disclosure risk of a release in an engine, computed from its equivalence classes instead of sampled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
import polars as pl

from sfumato.attacks import (
    AnyColumns,
    Arm,
    Attack,
    AttackScenario,
    AttributeLinkage,
    Discloses,
    Linkage,
    Outcome,
)
from sfumato.data.table import Table
from sfumato.dataset import Data, Role, Schema
from sfumato.dataset.rows import Rows
from sfumato.engines.memory import memory_bytes
from sfumato.engines.stored_table import StoredTable
from sfumato.errors import NotApplicable, OutOfMemory
from sfumato.evaluation.battery import battery_of
from sfumato.evaluation.check import Subject, paired_rows
from sfumato.evaluation.class_queries import ClassCounter
from sfumato.evaluation.evaluation import Evaluation
from sfumato.evaluation.run import CELL_BYTES
from sfumato.masking.base import method_of
from sfumato.measures import Measure, MeasureResult
from sfumato.measures.classes import ClassCounts, ClassMeasure, class_counts
from sfumato.recipe import Limits
from sfumato.release import Release, Verdict

_FIRST_ROWS = 10_000
"""Rows by which the battery of a large release is chosen."""
_ROWS_NEEDED = "{what} needs all rows in memory, and they exceed the limit."
_TRUTH = "class sizes of the whole file"
_EMPTY = "Every record was suppressed: the release has no rows."


def evaluate_counts(
    subject: Subject,
    manifest: Mapping[str, object],
    *,
    attacks: Sequence[Attack],
    measures: Sequence[Measure],
    limits: Limits,
    verdicts: Sequence[Verdict] = (),
) -> Evaluation:
    """The evaluation of a release that is too large for memory: what follows from the sizes of its classes.

    Attacks of the battery that need the rows are "not judged", and so are the limits that depend on them. Measures that
    need the rows have a reason and no value.
    """
    assert isinstance(subject.release, StoredTable)
    return Evaluation(
        manifest=manifest,
        attacks=counted_attacks(subject, manifest, attacks, limits, control=True),
        measures=class_measures(subject, measures),
        verdicts=tuple(verdicts),
        limit_set=limits,
    )


def counted_attacks(
    subject: Subject,
    manifest: Mapping[str, object],
    attacks: Sequence[Attack],
    limits: Limits,
    *,
    knows: Sequence[str] | None = None,
    control: bool = False,
) -> tuple[Outcome | NotApplicable, ...]:
    """The attacks whose success follows from class sizes, and a refusal for each other attack of the battery.

    ``control`` says that in memory there would be people who are not in the release.
    """
    assert isinstance(subject.release, StoredTable)
    computed = class_attacks(subject.release, subject.schema, manifest, people=subject.released_people, knows=knows)
    names = {_name(item) for item in computed}
    needed = CELL_BYTES * cells_of(subject.release, subject.original)
    refused = []
    for attack in _battery(subject, manifest, attacks, limits, control=control):
        given = attack.model_dump(exclude_defaults=True).keys() - {"secret", "tolerance", "most"}
        if given or attack.part_name() not in names:
            refused.append(_needs_rows(attack.part_name(), attack.discloses, needed))
            refused[-1].facts |= {"setting": attack.setting, "any_columns": attack.any_columns}
    return (*computed, *refused)


def _battery(
    subject: Subject, manifest: Mapping[str, object], attacks: Sequence[Attack], limits: Limits, *, control: bool
) -> tuple[Attack, ...]:
    """The attacks that would be run on this release in memory: they are chosen by the steps and a few rows."""
    if subject.original is None:
        return tuple(attacks)
    most = min(_FIRST_ROWS, subject.release.rows)
    if subject.lineage is not None:
        before, after, lineage = paired_rows(
            subject.original, subject.release, subject.schema, subject.lineage, most=most
        )
    else:
        first = np.arange(most)
        frame = subject.original.load(subject.original.columns, np.arange(min(_FIRST_ROWS, subject.original.rows)))
        before, lineage = Data(table=Table(frame=frame), schema=subject.schema), None
        after = Table(frame=subject.release.load(subject.release.columns, first))
    scenario = AttackScenario(
        original=before,
        release=Release(table=after, manifest=dict(manifest)),
        lineage=lineage,
        control=before.table if control else None,
    )
    return tuple(battery_of(scenario, attacks, limits))


def cells_of(*tables: Rows | None) -> int:
    """Number of cells of these tables."""
    return sum(table.rows * len(table.columns) for table in tables if table is not None)


def fits_in_memory(memory: str, *tables: Rows | None) -> bool:
    """Whether attacks and measures may load these tables within a memory limit."""
    return CELL_BYTES * cells_of(*tables) <= memory_bytes(memory)


def class_attacks(
    table: StoredTable,
    schema: Schema,
    manifest: Mapping[str, object],
    *,
    people: pl.Series | None = None,
    knows: Sequence[str] | None = None,
) -> tuple[Outcome | NotApplicable, ...]:
    """The expected success of ``linkage``, ``attribute-linkage`` and ``any-columns`` on rows whose values are true.

    An attacker who knows all quasi-identifiers of somebody in the release (or the columns ``knows``) and picks one of
    the matching rows is right with probability 1 / class size, so the expected risk is the number of classes divided by
    the number of rows. Where people have several rows, ``people`` has the person of each row, and identity is counted
    by people. An attacker who guesses the most frequent sensitive value of the class is right for the rows that hold
    it. Both are upper bounds where classes overlap. For altered values they say nothing, and the attacks are not
    judged.
    """
    quasi = tuple(name for name in knows or schema.names(Role.QUASI) if name in table.columns)
    altered = _altered(manifest)
    counter = ClassCounter(table=table, people=people)
    outcomes = [_linkage(counter, quasi, altered)]
    for secret in schema.names(Role.SENSITIVE):
        if secret in table.columns and quasi and counter.classes(quasi).rows:
            outcomes.append(_attribute_linkage(counter, quasi, secret, altered))
    if altered is None:
        outcomes.append(_altered_values(AnyColumns.part_name(), Discloses.IDENTITY, "columns"))
    else:
        unknown = altered | _meaningless(manifest)
        outcomes += file_columns(counter, [name for name in table.columns if name not in unknown], _TRUTH)
    if schema.unit is None:
        return tuple(outcomes)
    by_people = (Discloses.IDENTITY,) if people is not None else ()
    return tuple(
        replace(item, counts="rows") if isinstance(item, Outcome) and item.discloses not in by_people else item
        for item in outcomes
    )


def class_measures(subject: Subject, measures: Sequence[Measure]) -> tuple[MeasureResult, ...]:
    """Measures that follow from the classes of a release; others have a reason and no value."""
    counted: tuple[ClassCounts, ClassCounts | None] | None = None
    results = []
    for measure in measures:
        name = measure.part_name()
        try:
            if not isinstance(measure, ClassMeasure):
                raise NotApplicable(_ROWS_NEEDED.format(what=f"`{name}`"))
            counted = counted or class_counts(subject.release, subject.original, subject.schema)
            results.append(measure.of_counts(counted))
        except NotApplicable as refusal:
            results.append(MeasureResult(measure=name, value=None, reason=str(refusal)))
    return tuple(results)


def _linkage(counter: ClassCounter, quasi: tuple[str, ...], altered: frozenset[str] | None) -> Outcome | NotApplicable:
    if not quasi:
        return _refused(Linkage.part_name(), Discloses.IDENTITY, "The release has no quasi-identifier column.")
    found, people = counter.found(quasi)
    if not people:
        return _refused(Linkage.part_name(), Discloses.IDENTITY, _EMPTY)
    if altered is None or altered & set(quasi):
        return _altered_values(Linkage.part_name(), Discloses.IDENTITY, "quasi-identifiers")
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
        return _altered_values(name, Discloses.ATTRIBUTE, f"`{secret}` or quasi-identifiers")
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


def _name(item: Outcome | NotApplicable) -> str:
    return item.attack if isinstance(item, Outcome) else str(item.facts["attack"])


def _refused(attack: str, discloses: Discloses, reason: str) -> NotApplicable:
    refusal = NotApplicable(reason)
    refusal.facts |= {"attack": attack, "discloses": str(discloses)}
    return refusal


def _needs_rows(attack: str, discloses: Discloses, needed: float) -> OutOfMemory:
    """An attack that was not run because it needs the rows: limits of its kind are not judged."""
    reason = f"{_ROWS_NEEDED.format(what=f'`{attack}`')} It needs about {needed / 1e9:,.1f} GB."
    refusal = OutOfMemory(reason, fix="Raise `memory`, or attack a sample.", option="memory")
    refusal.facts |= {"attack": attack, "discloses": str(discloses)}
    return refusal


def _altered_values(attack: str, discloses: Discloses, what: str) -> OutOfMemory:
    reason = f"The values of {what} were altered, and the attack needs the rows in memory."
    refusal = OutOfMemory(reason, fix="Raise `memory`, or run `sfumato attack` on a sample.", option="memory")
    refusal.facts |= {"attack": attack, "discloses": str(discloses)}
    return refusal


def _altered(manifest: Mapping[str, Any]) -> frozenset[str] | None:
    """Columns that steps altered instead of coarsening them; None if a step does not name its columns, or if the steps
    are not published."""
    if manifest.get("steps") is None:
        return None
    altered: set[str] = set()
    for step in manifest["steps"]:
        if step.get("truthful"):
            continue
        if "columns" not in step:
            return None
        altered.update(step["columns"])
    return frozenset(altered)


def _meaningless(manifest: Mapping[str, Any]) -> frozenset[str]:
    """Released columns whose values nobody outside can know, such as pseudonyms."""
    steps = (step for step in manifest.get("steps", ()) if method_of(step).meaningless_values)
    return frozenset(name for step in steps for name in step.get("columns", ()))


_NEARLY_ALL = 0.9
_COUNTED = 12
"""Sets of each size that are counted exactly: those with most combinations of values by an approximate count."""

_WIDEST = 40
"""Columns with most values, of which pairs and triples are formed."""


def file_columns(counter: ClassCounter, names: Sequence[str], truth: str) -> tuple[Outcome, ...]:
    """The expected success of the attacker who knows up to three of these columns, and of the one who knows all.

    The values of the columns must be true. Rows that show ``*`` in all columns of a set are suppressed, and nobody
    looks for a person there. Pairs and triples are ordered by the product of approximate distinct counts; the first
    dozen of each are counted.
    """
    width = dict(zip(names, counter.distinct(names), strict=True))
    telling = [name for name in names if width[name] > 1]
    if not counter.table.rows or not telling:
        return ()
    people = counter.table.rows if counter.people is None else counter.found(telling)[1]
    widest = sorted(telling, key=lambda name: -width[name])[:_WIDEST]
    best: tuple[float, tuple[str, ...]] = (0.0, ())
    searched = []
    for size in range(1, min(3, len(telling)) + 1):
        ordered = sorted(combinations(widest, size), key=lambda chosen: -prod(width[name] for name in chosen))
        counted = [(counter.found(chosen)[0], chosen) for chosen in ordered[:_COUNTED]]
        best = max(best, *counted, key=lambda pair: pair[0])
        searched.append(f"{len(counted)} of {comb(len(telling), size):,} sets of {size}")
        if best[0] >= _NEARLY_ALL * people:
            break
    everything = (counter.found(telling)[0], tuple(telling))
    return (
        _outcome(AnyColumns(), best, people, truth, "; ".join(searched)),
        _outcome(AnyColumns(most="all"), everything, people, truth, f"all {len(telling)} columns together"),
    )


def _outcome(
    attack: AnyColumns, found: tuple[float, tuple[str, ...]], people: int, truth: str, searched: str
) -> Outcome:
    return Outcome(
        attack=attack.part_name(),
        discloses=Discloses.IDENTITY,
        main=Arm(hits=found[0], trials=people),
        baseline=Arm(hits=1, trials=people),
        computed=True,
        claims=people,
        knows=found[1],
        any_columns=True,
        setting=attack.setting,
        detail={"searched": searched},
        truth=truth,
        threat=attack.summary(),
    )
