"""Run a recipe for a graph, attack the release and measure it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from sfumato.api.kinds.graph.protection import GraphProtection
from sfumato.data.key_file import Key, as_key
from sfumato.data.yaml_documents import document_of, file_of
from sfumato.deadline import stopping
from sfumato.evaluation import Evaluation
from sfumato.evaluation.graph import attack_release, measure_release, protect_graph
from sfumato.progress import AUTO, Progress
from sfumato.recipe.graph_recipe import GraphRecipe
from sfumato.rng import KeyedRng


def protect_graph_recipe(
    plan: GraphRecipe | str | Path | Mapping[str, object],
    data: object = None,
    *,
    seed: int | None = None,
    key: Key | None = None,
    n_targets: int = 5000,
    seconds: float | None = None,
    unmet: bool = False,
    progress: Progress = AUTO,
) -> GraphProtection:
    """Run a recipe for a graph, attack the release and measure it. Nothing is written until ``save``.

    ``data`` is a :class:`~sfumato.graphs.Graph`, a networkx or igraph graph, a scipy.sparse matrix or an edge table;
    the recipe's own tables if left out. ``seed`` repeats a run together with the ``key`` of that run, as in
    :func:`sfumato.protect`.
    """
    begin = time.monotonic()
    parsed = _recipe(plan)
    rng = KeyedRng(seed if seed is not None else parsed.seed, key=as_key(key))
    original = parsed.graph.read() if data is None else parsed.graph.of(data)
    deadline = stopping(progress, seconds, begin=begin)
    released = protect_graph(parsed, original, rng.of_run(parsed.draws(), original.digest), progress)
    evaluation = Evaluation(
        manifest=released.manifest,
        attacks=tuple(attack_release(parsed, original, released, rng, n_targets=n_targets, progress=deadline)),
        measures=tuple(measure_release(parsed, original, released, rng, progress=deadline)),
        verdicts=released.verdicts,
        limit_set=parsed.limits,
    )
    return GraphProtection(
        recipe=parsed, original=original, released=released, evaluation=evaluation, rng=rng, hand_out=unmet
    )


def _recipe(recipe: GraphRecipe | str | Path | Mapping[str, object]) -> GraphRecipe:
    if isinstance(recipe, GraphRecipe):
        return recipe
    file = file_of(recipe)
    return GraphRecipe.from_document(document_of(recipe, source="recipe")) if file is None else GraphRecipe.load(file)
