"""Protect a file larger than memory: an engine masks it, and its risk is computed from the equivalence classes."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.kinds.microdata.protection import MicrodataProtection
from sfumato.attacks import AttackScenario
from sfumato.data import preview, read, scan
from sfumato.data.key_file import Key, as_key
from sfumato.data.table import Table
from sfumato.data.url import file_and_options
from sfumato.dataset import Data, Role
from sfumato.deadline import Deadline
from sfumato.engines.choice import masking_engine
from sfumato.errors import BadParameter
from sfumato.evaluation import Evaluation, evaluate, release_manifest, with_control
from sfumato.evaluation.check import run_checks
from sfumato.evaluation.class_risk import class_attacks, class_measures
from sfumato.evaluation.subjects import FileSubject
from sfumato.masking.out_of_core import ProtectedFile, protect_file
from sfumato.masking.out_of_core.stored_table import StoredTable
from sfumato.measures import default_measures
from sfumato.profiling.undecided import refuse_undecided
from sfumato.progress import SILENT, Progress
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release, Verdict
from sfumato.release.folder import LINEAGE, load_lineage
from sfumato.release.public_folder import PublicFolder, Why
from sfumato.reports import build_report
from sfumato.rng import KeyedRng, Rng

__all__ = ["OutOfCoreProtection", "protect_out_of_core"]


EVALUATED_ROWS = 300_000
"""Largest number of rows of files that are attacked and measured in memory."""
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
    deadline = progress if seconds is None else Deadline(until=begin + seconds, listener=progress, clock=clock)
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
    verdicts, people = file_verdicts(recipe, masked, source, options, engine=engine, memory=memory, progress=progress)
    evaluation, original, release = _evaluated(
        recipe, masked, verdicts, people, source, options, rng=rng, n_targets=n_targets, took=clock() - begin,
        progress=deadline,
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


def file_verdicts(
    recipe: Recipe,
    masked: ProtectedFile,
    source: Any,
    options: Mapping[str, Any],
    *,
    engine: str = "duckdb",
    memory: str = "4GB",
    progress: Progress = SILENT,
) -> tuple[tuple[Verdict, ...], pl.Series | None]:
    """The verdicts of every registered check on a masked file; columns that a check needs are loaded by the engine.

    Also the person of each released row, if the recipe has a unit and its column fits into memory.
    """
    backend = masking_engine(engine, memory=memory)
    with ExitStack() as stack:
        stack.enter_context(backend.keep_open())
        before = stack.enter_context(backend.workspace(source, options=options, numbered=True, progress=progress))
        after = stack.enter_context(backend.workspace(masked.path, numbered=True, progress=progress))
        subject = FileSubject(
            schema=recipe.schema,
            models=masked.models,
            model_verdicts=masked.verdicts,
            steps=masked.steps,
            order=recipe.order,
            lineage=load_lineage(masked.path.with_name(LINEAGE)),
            file=StoredTable.open(after, recipe.schema, original=False),
            source=StoredTable.open(before, recipe.schema, original=True),
        )
        return run_checks(subject), subject.released_people


def _evaluated(
    recipe: Recipe,
    masked: ProtectedFile,
    verdicts: Sequence[Verdict],
    people: pl.Series | None,
    source: Any,
    options: Mapping[str, Any],
    *,
    rng: Rng,
    n_targets: int,
    took: float,
    progress: Progress,
) -> tuple[Evaluation, Table | None, Table | None]:
    """The evaluation, and the original and the release where they were read into memory.

    Files of up to ``EVALUATED_ROWS`` rows get the evaluation of a release in memory. For larger ones the expected
    success of attacks is computed from the equivalence classes.
    """
    manifest = release_manifest(
        recipe,
        columns=list(scan(masked.path).columns),
        rows=masked.rows,
        steps=[dict(step) for step in masked.steps],
        verdicts=verdicts,
    )
    is_file = Path(file_and_options(source)[0]).is_file()
    if masked.rows and masked.original_rows <= EVALUATED_ROWS and is_file:
        original = Data.of(read(source, **options), recipe.schema)
        release = Release(table=read(masked.path), manifest=manifest)
        lineage = load_lineage(masked.path.with_name(LINEAGE))
        scenario = AttackScenario(original=original, release=release, lineage=lineage)
        evaluation = evaluate(
            with_control(recipe, scenario, rng=rng, seconds=took, progress=progress),
            attacks=recipe.attacks,
            measures=recipe.measures or default_measures(),
            limits=recipe.limits,
            verdicts=verdicts,
            rng=rng,
            n_targets=n_targets,
            before=True,
            progress=progress,
        )
        return evaluation, original.table, release.table
    computed = Evaluation(
        manifest=manifest,
        attacks=class_attacks(masked.path, recipe.schema, manifest, people=people),
        measures=class_measures(masked.path, recipe.schema),
        verdicts=tuple(verdicts),
        limit_set=recipe.limits,
    )
    return computed, None, None
