"""Protect a file larger than memory: an engine masks it, and its risk is computed from the equivalence classes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.kinds.microdata.inputs import InputTable
from sfumato.api.kinds.microdata.protection import MicrodataProtection
from sfumato.data import preview, read, scan
from sfumato.data.key_file import Key, as_key
from sfumato.data.table import Table
from sfumato.dataset import Data, Role
from sfumato.deadline import stopping
from sfumato.errors import BadParameter
from sfumato.evaluation import Evaluation, evaluate_release, release_manifest
from sfumato.evaluation.check import Subject, run_checks
from sfumato.evaluation.class_risk import evaluate_counts, fits_in_memory
from sfumato.masking.protect_file import ProtectedFile, protect_file
from sfumato.measures import default_measures
from sfumato.profiling.undecided import refuse_undecided
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release
from sfumato.release.folder import LINEAGE, load_lineage
from sfumato.release.public_folder import PublicFolder, Why
from sfumato.reports import build_report
from sfumato.rng import KeyedRng, Rng

_EXAMINED = 200_000
"""Rows on which an undecided column's unique values are counted."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OutOfCoreProtection(MicrodataProtection):
    """A masked file in a temporary folder, which ``save`` moves into the release folder."""

    masked: ProtectedFile
    folder: tempfile.TemporaryDirectory[str]
    """Removed with this object."""
    source: Any
    options: Mapping[str, Any]

    def _native(self) -> pl.LazyFrame:
        return read_lazily(self.masked.path)

    @property
    def judged_release(self) -> Release:
        """The masked table, read into memory, with its public manifest."""
        return Release(table=read(self.masked.path), manifest=self.evaluation.manifest)

    @property
    def lineage(self) -> Lineage:
        """The secret row map, read into memory: 8 bytes a row."""
        lineage = load_lineage(self.masked.path.with_name(LINEAGE))
        assert lineage is not None
        return lineage

    @property
    def original(self) -> Data:
        """The original, read into memory."""
        return Data.of(read(self.source, **self.options), self.recipe.schema)

    @property
    def rows(self) -> int:
        return self.masked.rows

    @property
    def column_names(self) -> Sequence[str]:
        return list(scan(self.masked.path).columns)

    def _write_data(self, folder: PublicFolder, suffix: str | None) -> Path:
        if suffix is not None and suffix != self.masked.path.suffix:
            raise BadParameter(
                f"The masked file was written as {self.masked.path.suffix}.", fix=f"Run protect with suffix={suffix!r}."
            )
        folder.allow("the masked file", Why.RELEASED)
        return _moved(self.masked.path, folder.path)

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
    key: Key | None = None,
    n_targets: int = 5000,
    seconds: float | None = None,
    workspace: Path | None = None,
    unmet: bool = False,
    progress: Progress = SILENT,
    clock: Callable[[], float] = time.monotonic,
) -> OutOfCoreProtection:
    """Mask a file of any size with an engine and evaluate the masked file.

    The secret row map is written to the private folder.
    """
    if recipe.schema.names(Role.UNDECIDED) or recipe.path is not None:
        sample = preview(source, most=_EXAMINED, **options).table.frame
        refuse_undecided(recipe.schema, sample, recipe=recipe.path)
    begin = clock()
    deadline = stopping(progress, seconds, clock=clock, begin=begin)
    rng = KeyedRng(seed if seed is not None else recipe.seed, key=as_key(key))
    folder = tempfile.TemporaryDirectory(prefix="sfumato-", dir=workspace)
    masked = protect_file(
        schema=recipe.schema,
        steps=recipe.steps,
        models=recipe.models,
        source=source,
        options=dict(options),
        target=Path(folder.name) / f"data{suffix}",
        rng=rng,
        engine=engine,
        order=recipe.order,
        lineage=Path(folder.name) / LINEAGE,
        memory=memory,
        progress=progress,
    )
    evaluation, original, release = _evaluated(
        recipe, masked, InputTable(location=source, options=options), engine=engine, memory=memory, rng=rng,
        n_targets=n_targets, took=clock() - begin, progress=progress, deadline=deadline,
    )  # fmt: skip
    return OutOfCoreProtection(
        recipe=recipe,
        key=rng.key,
        evaluation=evaluation,
        report_data=build_report(
            recipe,
            evaluation,
            steps=masked.private,
            original=original,
            release=release,
            original_rows=masked.original_rows,
        ),
        hand_out=unmet,
        masked=masked,
        folder=folder,
        source=source,
        options=options,
    )


def _evaluated(
    recipe: Recipe,
    masked: ProtectedFile,
    source: InputTable,
    *,
    engine: str,
    memory: str,
    rng: Rng,
    n_targets: int,
    took: float,
    progress: Progress,
    deadline: Progress,
) -> tuple[Evaluation, Table | None, Table | None]:
    """The evaluation, and the original and the release where they were read into memory.

    All checks run where the rows lie. Attacks and measures get the rows if both tables fit into the memory limit. Of
    larger ones, the risks that follow from the equivalence classes are computed and all others are not judged. Only
    attacks and measures in memory stop at the ``deadline``: a release always has its verdicts.
    """
    lineage = load_lineage(masked.path.with_name(LINEAGE))
    released = InputTable(location=masked.path)
    with (
        released.open(recipe.schema, original=False, engine=engine, memory=memory, progress=progress) as after,
        source.open(recipe.schema, original=True, engine=engine, memory=memory, progress=progress) as before,
    ):
        subject = Subject(
            release=after,
            original=before,
            schema=recipe.schema,
            models=masked.models,
            model_verdicts=masked.verdicts,
            steps=masked.steps,
            order=recipe.order,
            lineage=lineage,
        )
        verdicts = run_checks(subject)
        manifest = release_manifest(recipe, subject, verdicts)
        whole = fits_in_memory(memory, subject.release, subject.original)
        if not masked.rows or source.file is None or not source.file.is_file() or not whole:
            counted = evaluate_counts(
                subject, manifest, attacks=recipe.attacks, measures=recipe.measures or default_measures(),
                limits=recipe.limits, verdicts=verdicts,
            )  # fmt: skip
            return counted, None, None
    original = Data.of(source.table(), recipe.schema)
    release = Release(table=released.table(), manifest=manifest)
    evaluation = evaluate_release(
        recipe, original, release, lineage, verdicts=verdicts, rng=rng, n_targets=n_targets, seconds=took,
        progress=deadline,
    )  # fmt: skip
    return evaluation, original.table, release.table
