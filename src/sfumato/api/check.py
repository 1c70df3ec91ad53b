"""The verb "check": a release, ours or anybody's, judged once more by code that did not make it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.data import Table, read
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable
from sfumato.recipe import Recipe
from sfumato.release import Release, State, Verdict
from sfumato.release.folder import load_release
from sfumato.schema import Column, Dataset, Role, Schema
from sfumato.verification.counts import count_classes
from sfumato.verification.intersection import guard_intersection
from sfumato.verification.rules import verify

__all__ = ["check"]

INTERSECTION = "intersection"


def check(
    release: Any,
    *,
    original: Any = None,
    population: Any = None,
    recipe: Recipe | str | Path | None = None,
    earlier: Sequence[Release | str | Path] = (),
) -> list[Verdict]:
    """Verdicts of all models that the manifest (or the recipe) names, by plain GROUP BY statements.

    What cannot be checked with what was given is "not checked" with its reason, never "holds". With ``earlier``
    releases about the same people, one more verdict says what all of them together leave open.
    """
    made = release if isinstance(release, Release) else load_release(release)
    columns, models = _declared(made, recipe)
    table = made.table.frame
    quasi = [name for name, column in columns.items() if column.role is Role.QUASI and name in table.columns]
    sensitive = [name for name, column in columns.items() if column.role is Role.SENSITIVE and name in table.columns]
    if not quasi:
        reason = "No column of the release is known to be a quasi-identifier."
        return [Verdict(model=next(iter(model)), state=State.NOT_CHECKED, reason=reason) for model in models]
    before = _cast(read(original), columns).table.frame if original is not None else None
    shown = count_classes(
        table,
        quasi=quasi,
        sensitive=sensitive,
        missing={name: columns[name].missing for name in quasi},
        original=before,
        population=_like(_cast(read(population), {n: columns[n] for n in quasi}), table, quasi)
        if population is not None
        else None,
        paths={name: _paths(columns[name], before if before is not None else table, name) for name in sensitive},
    )
    verdicts = verify(models, shown)
    if earlier:
        if before is None:
            reason = "It needs the original, to know who stands in which class; name it with --original."
            return [*verdicts, Verdict(model=INTERSECTION, state=State.NOT_CHECKED, reason=reason)]
        whole = Dataset(table=Table(frame=before), schema=Schema(columns=columns))
        others = [one if isinstance(one, Release) else load_release(one) for one in earlier]
        verdicts += [_together(whole, name, [made, *others]) for name in sensitive]
    return verdicts


def _together(whole: Dataset, secret: str, releases: Sequence[Release]) -> Verdict:
    """Whether at least two values of a sensitive column are left for everybody when all releases are laid together."""
    try:
        [found] = guard_intersection(releases[0], releases[1:], original=whole, l=2, column=secret)
    except NotApplicable as refusal:
        return Verdict(model=INTERSECTION, state=State.NOT_CHECKED, reason=str(refusal))
    return found.verdict


def _declared(
    release: Release, recipe: Recipe | str | Path | None
) -> tuple[dict[str, Column], Sequence[Mapping[str, Any]]]:
    if recipe is not None:
        made = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        return dict(made.schema.columns), [{model.part_name(): model.to_dict()} for model in made.models]
    if not release.manifest:
        raise BadParameter(
            "The release has no manifest, so its roles and models are not known.", fix="Name a recipe with --recipe."
        )
    columns = {name: Column.model_validate(value) for name, value in release.manifest.get("columns", {}).items()}
    return columns, release.manifest.get("models", ())


def _cast(table: Table, columns: Mapping[str, Column]) -> Dataset:
    return Dataset.of(
        table, Schema(columns={name: column for name, column in columns.items() if name in table.columns})
    )


def _paths(column: Column, frame: pl.DataFrame, name: str) -> dict[str | None, tuple[str | None, ...]]:
    """For each value of a sensitive column its labels up to the root; a path is unique from its first label on."""
    data = Dataset(table=Table(frame=frame.select(name)), schema=Schema(columns={name: column}))
    return {
        path[0]: path
        for path in zip(*(level.text.to_list() for level in data.bound_hierarchy(name).levels), strict=True)
    }


def _like(population: Dataset, release: pl.DataFrame, quasi: Sequence[str]) -> pl.DataFrame:
    """The population with the labels that the release shows."""
    shown = []
    for name in quasi:
        hierarchy = population.bound_hierarchy(name)
        wanted = set(release.get_column(name).cast(pl.String).drop_nulls().unique().to_list()) - {"*"}
        levels = [
            n for n, level in enumerate(hierarchy.levels) if wanted <= set(level.labels.cast(pl.String).to_list())
        ]
        if not levels:
            raise ColumnsDiffer(
                f"The labels of `{name}` in the release are on no single level of its hierarchy over the population.",
                fix="A population can be compared with full-domain generalizations only.",
                column=name,
            )
        # when every row shows the root, any level would fit, and only the root is right
        level = levels[0] if wanted else hierarchy.height
        shown.append(hierarchy.generalize(population.table.column(name), level).cast(pl.String).alias(name))
    return pl.DataFrame(shown)
