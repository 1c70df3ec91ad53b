"""Protect a file larger than memory: an engine masks it, and linkage risk is computed over the whole file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.protection import Protection
from sfumato.attacks import Arm, Discloses, Outcome
from sfumato.data import read, scan
from sfumato.data.sql_quoting import quoted_name
from sfumato.errors import BadParameter, NotApplicable
from sfumato.evaluation import Evaluation, release_manifest
from sfumato.masking.out_of_core import ProtectedFile, protect_file
from sfumato.measures.base import MeasureResult
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release
from sfumato.release.folder import LINEAGE, load_lineage
from sfumato.reports import build_report
from sfumato.rng import Rng
from sfumato.schema import Role

__all__ = ["OutOfCoreProtection", "protect_out_of_core"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OutOfCoreProtection(Protection):
    """A masked file in a temporary folder, which ``save`` moves into the release folder."""

    masked: ProtectedFile
    folder: tempfile.TemporaryDirectory[str]
    """Removed with this object."""

    @property
    def data(self) -> pl.LazyFrame:
        return read_lazily(self.masked.path)

    @property
    def release(self) -> Release:
        """The masked table, read into memory, with its public manifest."""
        return Release(table=read(self.masked.path), manifest=self.evaluation.manifest)

    @property
    def lineage(self) -> Lineage:
        """The secret row map, read into memory: 8 bytes a row."""
        lineage = load_lineage(self.masked.path.with_name(LINEAGE))
        assert lineage is not None
        return lineage

    @property
    def rows(self) -> int:
        return self.masked.rows

    @property
    def column_names(self) -> Sequence[str]:
        return list(scan(self.masked.path).columns)

    def _write_data(self, folder: Path, suffix: str | None) -> Path:
        if suffix is not None and suffix != self.masked.path.suffix:
            raise BadParameter(
                f"The masked file was written as {self.masked.path.suffix}.", fix=f"Run protect with suffix={suffix!r}."
            )
        return _moved(self.masked.path, folder)

    def _write_lineage(self, folder: Path) -> None:
        _moved(self.masked.path.with_name(LINEAGE), folder).chmod(0o600)


def _moved(file: Path, folder: Path) -> Path:
    """The file under the same name in another folder."""
    path = folder / file.name
    try:
        os.link(file, path)
    except OSError:  # another file system, or one without links
        shutil.copyfile(file, path)
    return path


def read_lazily(path: Path) -> pl.LazyFrame:
    """The masked file as a lazy frame: nothing is read before ``collect``."""
    return pl.scan_parquet(path) if path.suffix == ".parquet" else pl.scan_csv(path, infer_schema=False)


def protect_out_of_core(
    recipe: Recipe,
    source: Any,
    options: Mapping[str, Any],
    *,
    engine: str = "duckdb",
    memory: str = "4GB",
    suffix: str = ".parquet",
    seed: int | None = None,
    workspace: Path | None = None,
    progress: Progress = SILENT,
) -> OutOfCoreProtection:
    """Mask a file of any size with an engine and evaluate the masked file.

    Linkage is computed instead of sampled: an attacker who knows all quasi-identifiers of somebody in the release and
    picks one of the matching rows is right with probability 1 / class size, so the expected risk is the number of
    equivalence classes divided by the number of rows. The secret row map is written to the private folder.
    """
    folder = tempfile.TemporaryDirectory(prefix="sfumato-", dir=workspace)
    masked = protect_file(
        schema=recipe.schema,
        steps=recipe.steps,
        models=recipe.models,
        source=source,
        options=dict(options),
        target=Path(folder.name) / f"data{suffix}",
        rng=Rng(seed if seed is not None else recipe.seed),
        engine=engine,
        order=recipe.order,
        lineage=Path(folder.name) / LINEAGE,
        memory=memory,
        progress=progress,
    )
    evaluation = evaluate_file(recipe, masked)
    return OutOfCoreProtection(
        recipe=recipe,
        evaluation=evaluation,
        report_data=build_report(recipe, evaluation, steps=masked.private),
        masked=masked,
        folder=folder,
    )


def evaluate_file(recipe: Recipe, masked: ProtectedFile) -> Evaluation:
    """Linkage risk and class sizes of a masked file, judged by the same limits as in memory."""
    manifest = release_manifest(
        recipe,
        columns=list(scan(masked.path).columns),
        rows=masked.rows,
        steps=[dict(step) for step in masked.steps],
        verdicts=masked.verdicts,
    )
    classes = count_file_classes(masked.path, recipe.schema.names(Role.QUASI))
    values = {
        "class-sizes": float(classes.smallest),
        "uniqueness": classes.unique / max(classes.rows, 1),
        "prosecutor": classes.count / max(classes.rows, 1),
    }
    reason = "" if classes.rows else "Every record was suppressed: the release has no rows."
    return Evaluation(
        manifest=manifest,
        attacks=(_linkage(classes, recipe.schema.names(Role.QUASI)),),
        measures=tuple(
            MeasureResult(measure=name, value=None if reason else value, reason=reason)
            for name, value in values.items()
        ),
        verdicts=masked.verdicts,
        limit_set=recipe.limits,
    )


@dataclass(frozen=True, kw_only=True)
class FileClasses:
    """Equivalence classes of a masked file, suppressed rows left out."""

    count: int
    rows: int
    smallest: int
    unique: int
    """Rows that are alone in their class."""


def count_file_classes(path: Path, quasi: Sequence[str]) -> FileClasses:
    """Count the equivalence classes of a written file by one GROUP BY.

    Rows that show ``*`` in every quasi-identifier are suppressed and form no class, unless all rows do.
    """
    source = scan(path)
    names = [quoted_name(name) for name in quasi]
    hidden = " AND ".join(f"CAST({name} AS VARCHAR) IS NOT DISTINCT FROM '*'" for name in names)
    statement = (
        "SELECT count(*), coalesce(sum(n), 0), coalesce(min(n), 0), coalesce(sum(n) FILTER (n = 1), 0) FROM "
        f"(SELECT count(*) AS n, {hidden} AS hidden FROM {source.expression} GROUP BY {', '.join(names)} "
        "QUALIFY NOT hidden OR count(*) OVER () = 1)"
    )
    with source.connect() as connection:
        row = connection.execute(statement).fetchone()
    assert row is not None
    count, rows, smallest, unique = map(int, row)
    return FileClasses(count=count, rows=rows, smallest=smallest, unique=unique)


def _linkage(classes: FileClasses, quasi: tuple[str, ...]) -> Outcome | NotApplicable:
    if not classes.rows:
        refusal = NotApplicable("Every record was suppressed: the release has no rows.")
        refusal.facts |= {"attack": "linkage", "discloses": str(Discloses.IDENTITY)}
        return refusal
    return Outcome(
        attack="linkage",
        discloses=Discloses.IDENTITY,
        main=Arm(hits=classes.count, trials=classes.rows),
        baseline=Arm(hits=1, trials=classes.rows),
        computed=True,
        claims=classes.rows,
        knows=quasi,
        truth="class sizes of the whole file",
        threat="An attacker who knows a person's quasi-identifiers picks one of the released rows that match.",
    )
