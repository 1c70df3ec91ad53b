"""Check the privacy models of microdata independently of the search that made the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.kinds.microdata.inputs import declared_schema
from sfumato.api.kinds.microdata.protection import MicrodataProtection
from sfumato.api.results import CheckResults
from sfumato.data import Table, read
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.errors import BadParameter, ColumnsDiffer
from sfumato.evaluation.check import run_checks
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.row_queries import SqlRowQueries
from sfumato.evaluation.rules import verify
from sfumato.evaluation.subjects import TableSubject
from sfumato.masking.model import PrivacyModel, UnknownModel, about_released, model_of
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release, Verdict
from sfumato.release.class_counts import ReleaseCounts
from sfumato.release.folder import load_lineage, load_release

__all__ = ["check_microdata"]


def check_microdata(
    release: Any,
    *,
    original: Any = None,
    population: Any = None,
    recipe: Recipe | str | Path | None = None,
    earlier: Sequence[Release | str | Path] = (),
    lineage: Lineage | None = None,
) -> CheckResults:
    """Check the privacy models of a release again, with code that is independent of the code that made it."""
    row_map = lineage
    if isinstance(release, MicrodataProtection):
        row_map = release.lineage if original is None else None
        original = release.original if original is None else original
        release = release.judged_release
    elif isinstance(release, str | Path) and Path(release).is_dir():
        row_map = load_lineage(Path(release))
    opened = release if isinstance(release, Release) else load_release(release)
    schema, published = _declared(opened, recipe)
    columns = {name: column for name, column in schema.columns.items() if name in opened.table.columns}
    sensitive = [name for name, column in columns.items() if column.role is Role.SENSITIVE]
    run = [pair for one in published for pair in _models_of_run(one, sensitive)]
    models = about_released([model for _, model in run], columns)
    truth = None
    if original is not None:
        truth = original if isinstance(original, Data) else _cast(read(original), schema)
    subject = TableSubject(
        schema=schema,
        models=[model for model in models if not isinstance(model, UnknownModel)],
        model_verdicts=_model_verdicts(
            [entry for entry, model in run if model in models], opened.table.frame, columns, truth, population
        ),
        steps=opened.manifest.get("steps", ()),
        order=str(opened.manifest.get("order", "kept")),
        lineage=row_map,
        earlier=[one if isinstance(one, Release) else load_release(one) for one in earlier],
        table=opened.table,
        original=truth,
    )
    return CheckResults(verdicts=run_checks(subject))


def _models_of_run(
    published: Mapping[str, Any], sensitive: Sequence[str]
) -> list[tuple[Mapping[str, Any], PrivacyModel]]:
    """The entries and models of a run. Parameters are not validated: some are not published."""
    pairs: list[tuple[Mapping[str, Any], PrivacyModel]] = []
    for name, parameters in published.items():
        given = dict(parameters) if isinstance(parameters, Mapping) else {}
        for model in model_of(name).model_construct(**given).for_columns(sensitive):
            column = getattr(model, "column", None)
            pairs.append(({name: {**given, **({"column": column} if column is not None else {})}}, model))
    return pairs


def _model_verdicts(
    models: Sequence[Mapping[str, Any]],
    table: pl.DataFrame,
    columns: Mapping[str, Column],
    original: Data | None,
    population: Any,
) -> list[Verdict]:
    """The verdicts on the models by independent formulas over counts of the release."""
    quasi = [name for name, column in columns.items() if column.role is Role.QUASI]
    sensitive = [name for name, column in columns.items() if column.role is Role.SENSITIVE]
    if not quasi:
        reason = "No column of the release is known to be a quasi-identifier."
        rows = ReleaseCounts(keys=(), sizes=(), own_rows=(), rows=SqlRowQueries(release=table))
        return [
            replace(verdict, reason=reason) if model_of(verdict.model).on_classes else verdict
            for verdict in verify(models, rows)
        ]
    before = None if original is None else original.table.frame
    people = None
    if population is not None:
        people = _cast(read(population), Schema(columns={name: columns[name] for name in quasi}))
    counts = count_classes(
        table,
        quasi=quasi,
        sensitive=sensitive,
        missing={name: columns[name].missing for name in quasi},
        original=before,
        population=None if people is None else _at_release_levels(people, table, quasi),
        paths={name: _paths(columns[name], before if before is not None else table, name) for name in sensitive},
    )
    return verify(models, counts)


def _declared(release: Release, recipe: Recipe | str | Path | None) -> tuple[Schema, Sequence[Mapping[str, Any]]]:
    """Roles, unit and models: those of the recipe, or else those of the manifest."""
    if recipe is not None:
        parsed = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        return parsed.schema, [{model.part_name(): model.to_dict()} for model in parsed.models]
    if not release.manifest:
        raise BadParameter(
            "The release has no manifest, so its roles and models are not known.", fix="Name a recipe with --recipe."
        )
    return declared_schema(release), release.manifest.get("models", ())


def _cast(table: Table, schema: Schema) -> Data:
    return Data.of(
        table, Schema(columns={name: column for name, column in schema.columns.items() if name in table.columns})
    )


def _paths(column: Column, frame: pl.DataFrame, name: str) -> dict[str | None, tuple[str | None, ...]]:
    """For each value of a sensitive column its labels up to the root; a path is unique from its first label on."""
    data = Data(table=Table(frame=frame.select(name)), schema=Schema(columns={name: column}))
    return {
        path[0]: path
        for path in zip(*(level.text.to_list() for level in data.bound_hierarchy(name).levels), strict=True)
    }


def _at_release_levels(population: Data, release: pl.DataFrame, quasi: Sequence[str]) -> pl.DataFrame:
    """The population generalized to the levels that the release shows."""
    generalized = []
    for name in quasi:
        hierarchy = population.bound_hierarchy(name)
        labels = set(release.get_column(name).cast(pl.String).drop_nulls().unique().to_list()) - {"*"}
        levels = [
            n for n, level in enumerate(hierarchy.levels) if labels <= set(level.labels.cast(pl.String).to_list())
        ]
        if not levels:
            raise ColumnsDiffer(
                f"The labels of `{name}` in the release are on no single level of its hierarchy over the population.",
                fix="A population can be compared with full-domain generalizations only.",
                column=name,
            )
        # if every row shows the root, all levels match and only the root is right
        level = levels[0] if labels else hierarchy.height
        generalized.append(hierarchy.generalize(population.table.column(name), level).cast(pl.String).alias(name))
    return pl.DataFrame(generalized)
