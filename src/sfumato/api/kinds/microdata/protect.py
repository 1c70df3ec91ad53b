"""Run a recipe for microdata, attack the release and measure it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sfumato.api.kinds.microdata.protection import InMemoryProtection, MicrodataProtection
from sfumato.data import size_hint
from sfumato.data.format import format_for
from sfumato.data.key_file import Key, as_key
from sfumato.data.url import file_and_options, is_url
from sfumato.data.yaml_documents import document_of, file_of
from sfumato.deadline import stopping
from sfumato.errors import BadParameter
from sfumato.evaluation import evaluate_release, make_release
from sfumato.progress import AUTO, Progress
from sfumato.recipe import Recipe
from sfumato.recipe.validate import recipe_from_document
from sfumato.release.folder import release_suffix
from sfumato.reports import build_report
from sfumato.rng import KeyedRng


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
    ending = suffix or (release_suffix(str(source)) if isinstance(source, str | Path) else ".csv")
    format_for(Path(f"data{ending}"))  # an unknown format is refused before the work
    if engine == "auto":
        engine = "memory" if parsed.formal_guarantee or _fits(source) else "duckdb"
    if engine != "memory":
        if parsed.formal_guarantee:
            raise BadParameter(
                "A step with a guarantee needs the table in memory: engines find the types of files from their rows.",
                fix="Leave `engine` out.",
            )
        from sfumato.api.kinds.microdata.out_of_core import protect_out_of_core

        return protect_out_of_core(
            parsed, source, options, engine=engine, memory=memory, suffix=suffix or ".parquet", seed=seed, key=key,
            n_targets=n_targets, seconds=seconds, workspace=workspace, unmet=unmet, progress=progress, clock=clock,
        )  # fmt: skip
    rng = KeyedRng(seed if seed is not None else parsed.seed, key=as_key(key))
    original = parsed.open(source, **options)
    deadline = stopping(progress, seconds, clock=clock, begin=begin)
    made = make_release(parsed, original, rng=rng, progress=progress)
    protected, release = made.masked, made.release
    evaluation = evaluate_release(
        parsed, original, release, protected.lineage, verdicts=made.verdicts, rng=rng, n_targets=n_targets,
        seconds=clock() - begin, progress=deadline,
    )  # fmt: skip
    report_data = build_report(
        parsed,
        evaluation,
        steps=[step.private() for step in protected.steps],
        original=original.table,
        release=release.table,
        lineage=protected.lineage,
        source=data,
    )
    return InMemoryProtection(
        recipe=parsed,
        key=rng.key,
        evaluation=evaluation,
        report_data=report_data,
        hand_out=unmet,
        suffix=ending,
        dataset=original,
        protected=protected,
        released=release,
    )


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


def _source(recipe: Recipe, data: object) -> tuple[Any, dict[str, Any]]:
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


def _fits(source: object) -> bool:
    """Whether a source can be read whole: frames and databases always, files by their size."""
    if not isinstance(source, str | Path) or is_url(str(source)):
        return True
    return not Path(file_and_options(source)[0]).is_file() or size_hint(source).fits
