"""Run a recipe on a file that does not fit into memory.

An engine holds the rows. Steps run by SQL, on counts of equivalence classes, or on the few columns that they read.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import polars as pl

from sfumato.data.atomic import replacing
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.data import HUGE
from sfumato.dataset.rows import RowGroups
from sfumato.engines import stored_sql
from sfumato.engines.choice import masking_engine
from sfumato.engines.engine import Engine
from sfumato.engines.stored_table import COMBINATIONS, StoredTable
from sfumato.errors import BadParameter, EmptyTable, NotApplicable, UnknownFormat
from sfumato.masking.base import Context, Step, StoredChange
from sfumato.masking.equivalence_classes import EquivalenceClasses
from sfumato.masking.evaluate import (
    classes_as_shown,
    evaluate_classes,
    not_checked,
    reference_of,
    rows_without_values,
)
from sfumato.masking.model import PrivacyModel, about_released, models_of_run
from sfumato.masking.pipeline import MaskedRun, run_steps
from sfumato.masking.stored_classes import CodedColumn, coded_column, count_classes, tracked_columns
from sfumato.progress import SILENT, Progress
from sfumato.release import Verdict
from sfumato.release.folder import written_with
from sfumato.rng import KeyedRng

MEMORY = "4GB"
"""Default memory limit of an engine."""


@dataclass(frozen=True, kw_only=True)
class ProtectedFile(MaskedRun):
    """A large release that was written. The verdicts on models are from a second GROUP BY, over the file itself."""

    path: Path
    rows: int
    original_rows: int


def protect_file(
    *,
    schema: Schema,
    steps: Sequence[Step],
    models: Sequence[PrivacyModel],
    source: str | Path,
    target: str | Path,
    rng: KeyedRng,
    options: Mapping[str, object] | None = None,
    engine: Engine | str = "duckdb",
    order: Literal["shuffled", "kept"] = "shuffled",
    lineage: Path | None = None,
    memory: str = MEMORY,
    threads: int | None = None,
    temporary: Path | None = None,
    force: bool = False,
    combinations: int = COMBINATIONS,
    progress: Progress = SILENT,
) -> ProtectedFile:
    """Mask a file of any size and write the release.

    A step works on counts of equivalence classes (``generalize``), by SQL (``remove``, ``pseudonymize``), or on the
    columns that it reads, which are loaded into memory; a step that needs more than ``memory`` or the whole table is
    refused. The masked values are the same as in memory under the same
    seed and key. Rows are shuffled by a keyed hash of their number; with ``order: kept`` whoever holds the original can
    link the two row by row. ``lineage`` is the path of the secret row map, a Parquet file; left out, none is written.

    ``options`` are those of the source's format, a delimiter for example. ``memory`` is the limit of the engine, which
    spills to ``temporary`` beyond it, and the limit of a step that loads columns. The compressed table comes on top,
    about 100 bytes for each distinct combination of quasi-identifiers. With more than about ``combinations`` of them,
    the columns with most values start at a coarser level.
    """
    if not isinstance(rng, KeyedRng):
        raise BadParameter("A release is drawn from a keyed random stream.", fix="Pass rng=KeyedRng(seed).")
    backend = masking_engine(engine, memory=memory, threads=threads)
    path = Path(target)
    if path.suffix.lower() not in backend.writes:
        raise UnknownFormat(
            f"The engine `{backend.part_name()}` cannot write `{path.suffix}`.",
            fix=f"Write one of these formats: {', '.join(backend.writes)}.",
        )
    with ExitStack() as stack:
        stack.enter_context(backend.keep_open())
        with ExitStack() as files:
            written = files.enter_context(replacing(path, force=force))
            mapped = None if lineage is None else files.enter_context(replacing(lineage, force=force))
            workspace = files.enter_context(
                backend.workspace(
                    source,
                    options=options,
                    writes=[file.resolve() for file in (written, mapped) if file is not None],
                    numbered=True,
                    temporary=temporary,
                    progress=progress,
                )
            )
            original = StoredTable.open(workspace, schema, original=True, combinations=combinations)
            _refuse_bad_weights(original)
            _refuse_repeated_key(original)
            _refuse_huge_numbers(original)
            _refuse_suppressed_values(original)
            if not original.rows:
                raise EmptyTable("The source has no rows.", fix="There is nobody in it to protect.")
            models = models_of_run(models, original.empty.sensitive)
            originals = value_counts(original, models)
            table, done = run_steps(
                original, steps, models, rng, progress, apply=_apply, columns=lambda table: table.empty
            )
            # the number of rows goes in, so that the same seed gives next month's file another order
            key = rng.child("order", original.rows).generator.bytes(16).hex()
            shuffle = table.put("key", pl.DataFrame({"shuffle": [key]})) if order == "shuffled" else None
            statement = stored_sql.released(table.sql, table.cells, order=workspace.order, key=shuffle)
            workspace.write(statement, written.resolve(), path.suffix.lower())
            if mapped is not None:
                os.close(
                    os.open(mapped, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                )  # closed to others from the start
                statement = stored_sql.row_map(table.sql, order=workspace.order, key=shuffle)
                workspace.write(statement, mapped.resolve(), ".parquet")
                mapped.chmod(0o600)
        with backend.workspace(path, options=written_with(path), temporary=temporary, progress=progress) as workspace:
            release = StoredTable.open(workspace, schema, original=False)
            models = about_released(models, release.cells)
            verdicts = judge_table(release, models, originals)
            rows = release.rows
    return ProtectedFile(
        path=path,
        rows=rows,
        original_rows=original.rows,
        steps=done,
        step_verdicts=None,
        model_verdicts=verdicts,
        models=tuple(models),
    )


def _apply(step: Step, table: StoredTable, context: Context) -> tuple[StoredTable, StoredChange]:
    change = step.apply_stored(table, context)
    return change.table, change


def _refuse_bad_weights(table: StoredTable) -> None:
    for name in table.schema.names(Role.WEIGHT):
        cell = f"t.{table.cells[name]}"
        # NaN and infinity times 0 is not 0; a comparison could be decided by the file's own statistics
        bad = f"{cell} IS NULL OR NOT ({cell} > 0 AND {cell} * 0 = 0)"
        statement = f"SELECT COUNT(*) AS n FROM ({table.sql}) AS t WHERE {bad}"
        if table.workspace.query(statement, "checking the weights").item():
            raise BadParameter(f"Weight column `{name}` must hold positive numbers and no gaps.", column=name)


def _refuse_repeated_key(table: StoredTable) -> None:
    if table.schema.key is not None:
        cell = f"t.{table.cells[table.schema.key]}"
        statement = f"SELECT COUNT(*) - COUNT(DISTINCT {cell}) AS n FROM ({table.sql}) AS t"
        repeated = table.workspace.query(statement, "checking the key of people").item() > 0
        table.schema.refuse_repeated_key(repeated=repeated)


def _refuse_huge_numbers(table: StoredTable) -> None:
    names = [name for name, dtype in table.empty.table.frame.schema.items() if dtype.is_float()]
    cells = [f"ABS(t.{table.cells[name]})" for name in names]
    # infinity less infinity is no number, and so not 0
    counts = ", ".join(f"COUNT(CASE WHEN {cell} > {HUGE} AND {cell} - {cell} = 0 THEN 1 END)" for cell in cells)
    if names:
        found = table.workspace.query(f"SELECT {counts} FROM ({table.sql}) AS t", "looking for huge numbers").row(0)
        table.schema.refuse_huge_numbers([name for name, count in zip(names, found, strict=True) if count])


def _refuse_suppressed_values(table: StoredTable) -> None:
    schema, quasi = table.empty.table.frame.schema, table.empty.quasi
    texts = [name for name in quasi if not schema[name].is_numeric() and not schema[name].is_temporal()]
    counts = ", ".join(f"COUNT(CASE WHEN CAST(t.{table.cells[name]} AS VARCHAR) = '*' THEN 1 END)" for name in texts)
    if texts:
        found = table.workspace.query(f"SELECT {counts} FROM ({table.sql}) AS t", "looking for suppressed cells").row(0)
        table.schema.refuse_suppressed_values([name for name, count in zip(texts, found, strict=True) if count])


def value_counts(table: StoredTable, models: Sequence[PrivacyModel]) -> dict[str, RowGroups]:
    """How often each value occurs, of every column that the models compare with."""
    names = tracked_columns(models, table.empty.sensitive, None)
    return {name: table.group([name]) for name in names if name in table.cells}


def judge_table(
    table: StoredTable, models: Sequence[PrivacyModel], originals: Mapping[str, RowGroups] | None = None
) -> tuple[Verdict, ...]:
    """The verdict of each model on a release. Of the original only the counts of values are used, where given."""
    quasi = table.empty.quasi
    if not quasi:
        reason = "The table has no quasi-identifier column."
        return tuple(not_checked(model, reason) for model in models)
    totals, beside = {}, []
    for name, shown in value_counts(table, models).items():
        hierarchy, totals[name] = reference_of(name, table.schema, shown, (originals or {}).get(name))
        beside.append(CodedColumn(name=name, values=shown.values.to_series(), hierarchy=hierarchy))
    coded = [coded_column(table, name, with_hierarchy=False) for name in quasi]
    classes = count_classes(table, coded, beside)
    tracked = {name: replace(column, reference=totals[name]) for name, column in classes.tracked.items()}
    classes = replace(classes, tracked=tracked)
    sample = classes.combinations(table.schema, most=1)
    verdicts = []
    for model in models:
        try:
            shown_classes = _as_shown(classes, table.schema, model.population_frame(sample))
        except NotApplicable as refusal:
            verdicts.append(not_checked(model, str(refusal)))
            continue
        verdicts.append(evaluate_classes(model, shown_classes, sample))
    return tuple(verdicts)


def _as_shown(classes: EquivalenceClasses, schema: Schema, population: pl.DataFrame | None) -> EquivalenceClasses:
    """The classes of a release by the values it shows. Combinations that show nothing are suppressed rows."""
    shown = classes.combinations(schema)
    hidden = rows_without_values(
        shown.table.frame, classes.columns, {name: schema.column(name).missing for name in classes.columns}
    )
    kept = classes if hidden.all() else classes.take(~hidden)
    if population is None:
        return kept
    columns = {name: Column(role=Role.QUASI, hierarchy=schema.column(name).hierarchy) for name in kept.columns}
    rows = Data(table=kept.combinations(schema).table, schema=Schema(columns=columns))
    return kept.spread_over(classes_as_shown(rows, population=population))
