"""Check the privacy models of microdata independently of the search that made the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.kinds.microdata.inputs import Released, declared_schema
from sfumato.api.results import CheckResults
from sfumato.data import read
from sfumato.data.table import Table, require_columns
from sfumato.dataset import Column, Data, Role, Schema
from sfumato.dataset.hierarchy import ROOT
from sfumato.dataset.rows import Rows
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable
from sfumato.evaluation.check import Subject, run_checks
from sfumato.evaluation.counts import count_classes
from sfumato.evaluation.row_queries import SqlRowQueries
from sfumato.evaluation.rules import verify
from sfumato.masking.base import method_of
from sfumato.masking.model import PrivacyModel, UnknownModel, about_released, model_of
from sfumato.recipe import Recipe
from sfumato.release import Lineage, Release, Verdict
from sfumato.release.class_counts import ReleaseCounts
from sfumato.release.folder import load_release
from sfumato.wording import counted


def check_microdata(
    release: object,
    *,
    original: object = None,
    population: object = None,
    recipe: Recipe | str | Path | None = None,
    earlier: Sequence[Release | str | Path] = (),
    lineage: Lineage | None = None,
    engine: str = "auto",
    memory: str = "4GB",
) -> CheckResults:
    """Check the privacy models of a release again, with code that is independent of the code that made it."""
    found = Released.find(release, original=original, lineage=lineage)
    schema, published = _declared(found.manifest, recipe)
    with found.opened(schema, engine=found.engine(engine), memory=memory) as subject:
        if recipe is not None:  # what it takes for known to attackers or for secret is judged, or refused
            require_columns(subject.columns, [*schema.names(Role.QUASI), *schema.names(Role.SENSITIVE)])
        columns = {name: column for name, column in schema.columns.items() if name in subject.columns}
        sensitive = [name for name, column in columns.items() if column.role is Role.SENSITIVE]
        run = [pair for one in published for pair in _models_of_run(one, sensitive)]
        models = about_released([model for _, model in run], columns)
        entries = [entry for entry, model in run if model in models]
        judged = replace(
            subject,
            models=[model for model in models if not isinstance(model, UnknownModel)],
            model_verdicts=_model_verdicts(entries, subject, columns, population, found.manifest),
            earlier=[one if isinstance(one, Release) else load_release(one) for one in earlier],
        )
        return CheckResults(verdicts=run_checks(judged))


def _models_of_run(
    published: Mapping[str, object], sensitive: Sequence[str]
) -> list[tuple[Mapping[str, object], PrivacyModel]]:
    """The entries and models of a run. Parameters are not validated: some are not published."""
    pairs: list[tuple[Mapping[str, object], PrivacyModel]] = []
    for name, parameters in published.items():
        given = dict(parameters) if isinstance(parameters, Mapping) else {}
        for model in model_of(name).model_construct(**given).for_columns(sensitive):
            column = getattr(model, "column", None)
            pairs.append(({name: {**given, **({"column": column} if column is not None else {})}}, model))
    return pairs


def _model_verdicts(
    models: Sequence[Mapping[str, object]],
    subject: Subject,
    columns: Mapping[str, Column],
    population: object,
    manifest: Mapping[str, Any],
) -> list[Verdict]:
    """The verdicts on the models by independent formulas over counts of the release."""
    release, original = subject.release, subject.original
    quasi = [name for name, column in columns.items() if column.role is Role.QUASI]
    sensitive = [name for name, column in columns.items() if column.role is Role.SENSITIVE]
    reason = "No column of the release is known to be a quasi-identifier."
    counts = ReleaseCounts(keys=(), sizes=(), own_rows=(), rows=SqlRowQueries(release=release))
    if quasi:
        people = None
        if population is not None:
            declared = Schema(columns={name: columns[name] for name in quasi})
            people = _at_release_levels(Data.of(read(population), declared), release, quasi)
        try:
            counts = count_classes(
                release,
                quasi=quasi,
                sensitive=sensitive,
                missing={name: columns[name].missing for name in quasi},
                original=original,
                population=people,
                paths={name: _paths(columns[name], original or release, name) for name in sensitive},
                suppressed=_may_be_suppressed(subject, quasi, manifest),
            )
            verdicts = verify(models, counts)
            if counts.suppressed_rows and subject.foreign:
                taken = (
                    f"{counted(counts.suppressed_rows, 'row')} with `*` in every quasi-identifier taken for suppressed."
                )
                verdicts = [replace(v, reason=f"{v.reason} {taken}".strip()) for v in verdicts]
            return verdicts
        except NotApplicable as refusal:
            reason = str(refusal)
    return [
        replace(verdict, reason=reason) if model_of(verdict.model).on_classes else verdict
        for verdict in verify(models, counts)
    ]


def _may_be_suppressed(subject: Subject, quasi: Sequence[str], manifest: Mapping[str, Any]) -> bool:
    """Whether steps may have suppressed a row: they changed each of its quasi-identifiers, or are withheld.

    Of a release without a manifest the original tells: where a column held ``*`` before, it is a value.
    """
    if manifest.get("recipe", {}).get("about", {}).get("method") == "withheld":
        return True
    if not subject.foreign:
        changed = {name for step in subject.steps for name in method_of(step).changed_columns(step, quasi)}
        return changed >= set(quasi)
    before = subject.original
    known = [name for name in quasi if before is not None and name in before.columns]
    return not any(ROOT in before.group([name]).values.cast(pl.String)[name] for name in known if before is not None)


def _declared(
    manifest: Mapping[str, Any], recipe: Recipe | str | Path | None
) -> tuple[Schema, Sequence[Mapping[str, Any]]]:
    """Roles, unit and models: those of the recipe, or else those of the manifest."""
    if recipe is not None:
        parsed = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        return parsed.schema, [{model.part_name(): model.to_dict()} for model in parsed.models]
    if not manifest:
        raise BadParameter(
            "The release has no manifest, so its roles and models are not known.",
            fix="Pass one as `recipe`.",
            option="recipe",
        )
    return declared_schema(manifest), manifest.get("models", ())


def _paths(column: Column, rows: Rows, name: str) -> dict[str | None, tuple[str | None, ...]]:
    """For each value of a sensitive column its labels up to the root; a path is unique from its first label on."""
    data = Data(table=Table(frame=rows.group([name]).values), schema=Schema(columns={name: column}))
    return {
        path[0]: path
        for path in zip(*(level.text.to_list() for level in data.bound_hierarchy(name).levels), strict=True)
    }


def _at_release_levels(population: Data, release: Rows, quasi: Sequence[str]) -> pl.DataFrame:
    """The population generalized to the levels that the release shows."""
    generalized = []
    for name in quasi:
        hierarchy = population.bound_hierarchy(name)
        labels = set(release.group([name]).values.to_series().cast(pl.String).drop_nulls()) - {"*"}
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
