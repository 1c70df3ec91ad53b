"""The work of jobs: profile a table, describe the forms of all parts, run a recipe, run a study, survey a lattice.

Each function takes a progress listener and plain arguments, and returns plain data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sfumato.progress import Progress

WORK: dict[str, Callable[..., object]] = {}
"""Work by the kind of its job."""
_PROFILED_ROWS = 1_000_000


def _work(function: Callable[..., object]) -> Callable[..., object]:
    WORK[function.__name__] = function
    return function


@_work
def profile(progress: Progress, *, data: str, options: dict[str, Any], recipe: str) -> dict[str, Any]:
    """What `sfumato init` finds, and the recipe that it would write."""
    from sfumato.data import preview
    from sfumato.data.source import Source
    from sfumato.profiling import propose, to_yaml

    sample = preview(data, most=_PROFILED_ROWS, **options)
    proposal = propose(sample.table, whole=sample.rows, progress=progress, max_size=3)
    source = Source.found(Source(location=data, options=options).address, beside=Path(recipe).parent)
    return {"proposal": proposal.to_dict(), "recipe": to_yaml(proposal, source)}


@_work
def forms(progress: Progress) -> dict[str, Any]:
    """The fields and docs of every part, for forms that are made from them."""
    from sfumato.app.forms import describe_parts

    return describe_parts()


@_work
def protect(
    progress: Progress, *, text: str, base: str, out: str, before: str | None, targets: int, seconds: float | None
) -> dict[str, Any]:
    """Run the recipe as `sfumato protect` does and keep the run as a whole, whether or not limits are met.

    A recipe with a seed repeats the run ``before``, whose key it is drawn with.
    """
    from sfumato.api.kinds.microdata.protect import protect_microdata as run
    from sfumato.app.runs import data_of, finish_run, run_version
    from sfumato.recipe import Recipe
    from sfumato.release.folder import stored_key

    parsed = Recipe.parse(text, base=Path(base))
    source = parsed.source.location if parsed.source is not None else ""
    data = data_of(source)
    key = stored_key(Path(before)) if before is not None else None
    made = run(parsed, key=key, n_targets=targets, seconds=seconds, progress=progress, workspace=Path(out))
    made.keep(Path(out, "release"))
    finish_run(Path(out), recipe=run_version(text), location=source, data=data, unmet=made.unmet)
    return {"rows": made.rows, "unmet": list(made.unmet)}


@_work
def study(progress: Progress, *, plan: str, out: str, seconds: float | None) -> dict[str, Any]:
    """Run a study. Finished candidates are kept in its folder, so that a cancelled study continues where it was."""
    from sfumato.api.study import study as run

    done = run(plan, out=out, total=seconds, progress=progress)
    document = done.to_dict()
    points = [dict(point, steps=_steps(made)) for point, made in zip(document["candidates"], done.points, strict=True)]
    return {**document, "candidates": points}


@_work
def lattice(progress: Progress, *, recipe: str) -> dict[str, Any]:
    """Evaluate all combinations of levels of the recipe's generalization, whatever range of levels it allows."""
    from sfumato.data import read
    from sfumato.dataset import Data
    from sfumato.masking.base import Context
    from sfumato.masking.methods.generalize import Generalize
    from sfumato.masking.pipeline import protect as run_steps
    from sfumato.recipe import Recipe
    from sfumato.rng import Rng

    parsed = Recipe.load(recipe)
    assert parsed.source is not None
    data = Data.of(read(parsed.source.location, **parsed.source.options), parsed.schema)
    place = next((n for n, step in enumerate(parsed.steps) if isinstance(step, Generalize)), None)
    step = parsed.steps[place] if place is not None else Generalize()
    assert isinstance(step, Generalize)
    rng = Rng(parsed.seed)
    if place:
        data = run_steps(data, steps=parsed.steps[:place], rng=rng, order="kept").data
    free = step.model_copy(update={"lowest": {}, "highest": {}})
    found = free.survey(data, Context(rng=rng, models=tuple(parsed.models), progress=progress))
    words = {
        name: _levels_in_words(data, name, high) for name, high in zip(found.columns, found.within.high, strict=True)
    }
    return {**found.to_dict(), "words": words}


def _levels_in_words(data: Any, column: str, highest: int) -> list[str]:
    hierarchy = data.schema.column(column).hierarchy
    removed = "all values removed (*)"
    return ["as it is", *(hierarchy.level_in_words(level) if hierarchy is not None else removed
                          for level in range(1, highest + 1))]  # fmt: skip


def _steps(point: Any) -> list[dict[str, Any]]:
    return [{step.part_name(): step.to_dict()} for step in point.candidate.steps]
