"""Run a recipe for microdata, attack the release and measure it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sfumato.api.kinds.microdata.inputs import InputTable
from sfumato.api.kinds.microdata.protection import InEngineProtection, InMemoryProtection, MicrodataProtection
from sfumato.api.protection import choices
from sfumato.data import preview
from sfumato.data.fingerprint import frame_digest
from sfumato.data.format import format_for
from sfumato.data.key_file import Key, as_key
from sfumato.data.url import file_and_options, is_url
from sfumato.data.yaml_documents import document_of, file_of
from sfumato.dataset import Data, Role
from sfumato.deadline import stopping
from sfumato.errors import BadParameter, Unmet
from sfumato.evaluation import Evaluation, evaluate_release, make_release
from sfumato.evaluation.class_risk import evaluate_counts, fits_in_memory
from sfumato.evaluation.make_release import JudgedRun, Made, judge_run
from sfumato.masking.pipeline import MaskedRun
from sfumato.masking.protect_file import protect_file
from sfumato.measures import default_measures
from sfumato.profiling.undecided import refuse_undecided
from sfumato.progress import AUTO, Progress
from sfumato.recipe import Recipe
from sfumato.recipe.validate import recipe_from_document
from sfumato.release import Release
from sfumato.release.folder import LINEAGE, load_lineage, release_suffix, written_with
from sfumato.reports import ReportData, build_report
from sfumato.rng import KeyedRng

_EXAMINED = 200_000
"""Rows on which an undecided column's unique values are counted."""


def protect_microdata(
    plan: Recipe | str | Path | Mapping[str, object],
    data: object = None,
    *,
    seed: int | None = None,
    key: Key | None = None,
    n_targets: int = 5000,
    seconds: float | None = None,
    engine: str = "auto",
    memory: str = "4GB",
    suffix: str | None = None,
    workspace: Path | None = None,
    unmet: bool = False,
    progress: Progress = AUTO,
    clock: Callable[[], float] = time.monotonic,
) -> MicrodataProtection:
    """Run a recipe, attack the release and measure it. Nothing is written until ``save``."""
    begin = clock()
    parsed = _recipe(plan)
    source, options = _source(parsed, data)
    table = InputTable(location=source, options=options)
    ending = suffix or (release_suffix(str(source)) if isinstance(source, str | Path) else ".csv")
    format_for(Path(f"data{ending}"))  # an unknown format is refused before the work
    if engine == "auto":
        engine = "memory" if parsed.formal_guarantee or table.fits else "duckdb"
    run = _Run(
        recipe=parsed, source=table, rng=KeyedRng(seed if seed is not None else parsed.seed, key=as_key(key)),
        n_targets=n_targets, hand_out=unmet, progress=progress, clock=clock, begin=begin,
        deadline=stopping(progress, seconds, clock=clock, begin=begin),
    )  # fmt: skip
    if engine == "memory":
        return run.in_memory(ending)
    return run.in_engine(engine, memory=memory, suffix=suffix or ".parquet", workspace=workspace)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """One call of ``protect``: the same judgement wherever the rows lie."""

    recipe: Recipe
    source: InputTable
    rng: KeyedRng
    n_targets: int
    hand_out: bool
    progress: Progress
    clock: Callable[[], float]
    begin: float
    deadline: Progress
    """Stops attacks and measures, never the checks: a release always has its verdicts."""

    def _draws(self, original: Data | None = None) -> KeyedRng:
        """The random numbers of the release: those of this recipe on this table, wherever its rows lie."""
        contents = self.source.digest
        if contents is None and original is not None:
            contents = frame_digest(original.table.frame)
        return self.rng.of_run({**self.recipe.draws(), "reading": dict(self.source.options)}, contents)

    def in_memory(self, suffix: str) -> InMemoryProtection:
        """Read the table and mask it in memory."""
        original = self.recipe.open(self.source.location, **self.source.options)
        made = _made(self.recipe, original, self._draws(original), self.progress)
        evaluation, report_data = self._evaluated(made.masked, made.judged, (original, made.release))
        return InMemoryProtection(
            recipe=self.recipe, key=self.rng.key, evaluation=evaluation, report_data=report_data,
            hand_out=self.hand_out, column_names=made.release.table.columns, in_memory=made.release, suffix=suffix,
            dataset=original, protected=made.masked,
        )  # fmt: skip

    def in_engine(self, engine: str, *, memory: str, suffix: str, workspace: Path | None) -> InEngineProtection:
        """Mask a file of any size with an engine and judge the masked file where it lies.

        Attacks and measures get the rows if both tables fit into the memory limit. Of larger ones, the risks that
        follow from the equivalence classes are computed and all others are not judged.
        """
        recipe, source, progress = self.recipe, self.source, self.progress
        if recipe.formal_guarantee:
            raise BadParameter(
                "A step with a guarantee needs the table in memory: engines find the types of files from their rows.",
                fix="Leave `engine` out.",
            )
        if recipe.schema.names(Role.UNDECIDED) or recipe.path is not None:
            sample = preview(source.location, most=_EXAMINED, **source.options).table.frame
            refuse_undecided(recipe.schema, sample, recipe=recipe.path)
        folder = TemporaryDirectory(prefix="sfumato-", dir=workspace)
        path = Path(folder.name) / f"data{suffix}"
        masked = protect_file(
            schema=recipe.schema, steps=recipe.steps, models=recipe.models, source=source.location,
            options=source.options, target=path, rng=self._draws(), engine=engine, order=recipe.order,
            lineage=path.with_name(LINEAGE), memory=memory, progress=progress,
        )  # fmt: skip
        lineage, file, tables = (
            load_lineage(path.with_name(LINEAGE)),
            InputTable(location=path, options=written_with(path)),
            None,
        )
        with ExitStack() as stack:
            after, before = (
                stack.enter_context(
                    one.open(recipe.schema, original=one is source, engine=engine, memory=memory, progress=progress)
                )
                for one in (file, source)
            )
            columns = after.columns
            whole = bool(masked.rows) and source.is_file and fits_in_memory(memory, after, before)
            judged = judge_run(recipe, masked, original=before, release=after, lineage=lineage, compare=whole)
            if whole:
                stack.close()
                release = Release(table=file.table(), manifest=judged.manifest)
                tables = Data.of(source.table(), recipe.schema), release
            evaluation, report_data = self._evaluated(masked, judged, tables)
        return InEngineProtection(
            recipe=recipe, key=self.rng.key, evaluation=evaluation, report_data=report_data, hand_out=self.hand_out,
            column_names=columns, in_memory=None if tables is None else tables[1], path=path, folder=folder,
            source=source,
        )  # fmt: skip

    def _evaluated(
        self, masked: MaskedRun, judged: JudgedRun, tables: tuple[Data, Release] | None
    ) -> tuple[Evaluation, ReportData]:
        """Attacks, measures and the report. Without the tables in memory, what follows from equivalence classes."""
        recipe, subject, original, release = self.recipe, judged.subject, None, None
        if tables is None:
            evaluation = evaluate_counts(
                subject, judged.manifest, attacks=recipe.attacks, measures=recipe.measures or default_measures(),
                limits=recipe.limits, verdicts=judged.verdicts,
            )  # fmt: skip
        else:
            original, release = tables[0].table, tables[1].table
            evaluation = evaluate_release(
                recipe, *tables, subject.lineage, verdicts=judged.verdicts, rng=self.rng, n_targets=self.n_targets,
                seconds=self.clock() - self.begin, progress=self.deadline,
            )  # fmt: skip
        steps = [step.private() for step in masked.steps]
        rows = None if subject.original is None or original is not None else subject.original.rows
        report_data = build_report(
            recipe, evaluation, steps=steps, original=original, release=release, lineage=subject.lineage,
            source=self.source.location, original_rows=rows,
        )  # fmt: skip
        return evaluation, report_data


def _made(recipe: Recipe, original: Data, rng: KeyedRng, progress: Progress) -> Made:
    """The release. Where no release meets the models, the refusal has the decisions that would change that."""
    try:
        return make_release(recipe, original, rng=rng, progress=progress)
    except Unmet as refusal:
        from sfumato.studies.rehearsal import ways_to_a_release

        refusal.ways = (
            () if recipe.formal_guarantee else ways_to_a_release(recipe, original.table, failing=refusal.columns)
        )
        if refusal.ways:
            refusal.fix = choices([f"{way.does}: {way.call()}" for way in refusal.ways])
        raise


def _recipe(recipe: Recipe | str | Path | Mapping[str, object]) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if not isinstance(recipe, str | Path | Mapping):
        raise BadParameter(
            f"An object of type {type(recipe).__name__} is no recipe.",
            fix="The recipe comes first, then the data: pass a path, YAML text, a mapping or a Recipe."
            " sfumato.propose(data).recipe(k=5) makes one.",
        )
    file = file_of(recipe)
    return recipe_from_document(document_of(recipe, source="recipe")) if file is None else Recipe.load(file)


def _source(recipe: Recipe, data: object) -> tuple[object, dict[str, object]]:
    """What to read, with the options of its format. The recipe's options apply to other files of the same format."""
    if data is None and recipe.source is None:
        raise BadParameter("The recipe names no data and none was passed.", fix="Add `data:` to it, or pass a file.")
    if data is None:
        assert recipe.source is not None
        return recipe.source.location, dict(recipe.source.options)
    if isinstance(data, str | Path) and recipe.source is not None and _same_format(data, recipe.source.location):
        return data, {**recipe.source.options, **file_and_options(data)[1]}
    return data, {}


def _same_format(one: str | Path, other: str) -> bool:
    return Path(file_and_options(one)[0]).suffix.lower() == Path(other).suffix.lower() and not is_url(str(one))
