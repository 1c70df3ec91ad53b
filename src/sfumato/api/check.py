"""``sfumato.check``: verify the privacy models of a release independently of the search that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from sfumato.api.protection import Protection
from sfumato.api.results import CheckResults
from sfumato.data import Table, read
from sfumato.errors import BadParameter, ColumnsDiffer, NotApplicable
from sfumato.masking.base import method_of
from sfumato.masking.model import model_of
from sfumato.recipe import Recipe
from sfumato.release import Release, State, Verdict
from sfumato.release.class_counts import ReleaseCounts
from sfumato.release.folder import load_lineage, load_release
from sfumato.schema import Column, Dataset, Role, Schema
from sfumato.verification.copied_rows import copied_verdict
from sfumato.verification.counts import count_classes
from sfumato.verification.derived_columns import derived_verdict
from sfumato.verification.intersection import guard_intersection
from sfumato.verification.row_queries import SqlRowQueries
from sfumato.verification.rules import verify

__all__ = ["check"]

INTERSECTION = "intersection"
UNDECIDED = "undecided columns"


def check(
    release: Any,
    *,
    original: Any = None,
    population: Any = None,
    recipe: Recipe | str | Path | None = None,
    earlier: Sequence[Release | str | Path] = (),
) -> CheckResults:
    """Check the privacy models of a release again, with code that is independent of the code that made it.

    Parameters
    ----------
    release
        The result of :func:`protect`, a release folder, any file, database URL or frame, or a ``Release``.
    original
        The table the release was made from: the reference distribution of t-closeness and similar models. A failed
        verdict ``derived columns`` then names released columns from which a masked or removed one follows.
    population
        The population table, for models such as k-map and delta-presence.
    recipe
        Roles and models, for a release without a manifest.
    earlier
        Earlier releases about the same people. One more verdict per sensitive column says whether all releases
        together leave at least two possible values for everybody; this needs ``original``.

    Returns
    -------
    CheckResults
        One verdict per model: holds, fails, or not checked with the reason. "Not checked" is never "holds".
    """
    row_map = None
    if isinstance(release, Protection):
        row_map = release.lineage if original is None else None
        original = release.original if original is None else original
        release = release.release
    elif isinstance(release, str | Path) and Path(release).is_dir():
        row_map = load_lineage(Path(release))
    opened = release if isinstance(release, Release) else load_release(release)
    columns, models = _declared(opened, recipe)
    table = opened.table.frame
    quasi = [name for name, column in columns.items() if column.role is Role.QUASI and name in table.columns]
    sensitive = [name for name, column in columns.items() if column.role is Role.SENSITIVE and name in table.columns]
    undecided = (*_of_steps(opened), *_undecided(columns, table.columns))
    if not quasi:
        reason = "No column of the release is known to be a quasi-identifier."
        rows = ReleaseCounts(keys=(), sizes=(), own_rows=(), rows=SqlRowQueries(release=table))
        unchecked = [
            next(iter(verify([model], rows)))
            if not model_of(str(name)).on_classes
            else Verdict(model=str(name), state=State.NOT_CHECKED, reason=reason)
            for model in models
            for name in model
        ]
        return CheckResults(verdicts=(*unchecked, *undecided))
    before = None
    if original is not None:
        data = original if isinstance(original, Dataset) else _cast(read(original), columns)
        before = data.table.frame
    counts = count_classes(
        table,
        quasi=quasi,
        sensitive=sensitive,
        missing={name: columns[name].missing for name in quasi},
        original=before,
        population=_at_release_levels(_cast(read(population), {n: columns[n] for n in quasi}), table, quasi)
        if population is not None
        else None,
        paths={name: _paths(columns[name], before if before is not None else table, name) for name in sensitive},
    )
    verdicts = (*verify(models, counts), *undecided)
    if before is not None:
        data = Dataset(table=Table(frame=before), schema=Schema(columns={**_removed(opened), **columns}))
        verdicts += derived_verdict(data, opened.table, lineage=row_map, together=bool(models))
        verdicts += copied_verdict(data.table, opened.table, row_map)
    if earlier and before is None:
        reason = "Earlier releases can be checked only with the original: name it with --original."
        return CheckResults(verdicts=(*verdicts, *_not_checked([INTERSECTION], reason)))
    if earlier and before is not None:
        data = Dataset(table=Table(frame=before), schema=Schema(columns=columns))
        others = [one if isinstance(one, Release) else load_release(one) for one in earlier]
        verdicts += tuple(_intersection(data, name, [opened, *others]) for name in sensitive)
    return CheckResults(verdicts=verdicts)


def _of_steps(release: Release) -> tuple[Verdict, ...]:
    """What the published steps guarantee by themselves, recomputed."""
    steps = release.manifest.get("steps", ())
    return tuple(v for step in steps for v in method_of(step).verify_release(step, release.table.frame))


def _undecided(columns: Mapping[str, Column], released: Sequence[str]) -> tuple[Verdict, ...]:
    """A failed verdict if the release holds columns whose role nobody has decided."""
    names = [name for name in released if name in columns and columns[name].role is Role.UNDECIDED]
    if not names:
        return ()
    reason = f"Nobody has decided the role of {', '.join(f'`{name}`' for name in names)}; see `sfumato decide`."
    return (Verdict(model=UNDECIDED, state=State.FAILS, worst=len(names), wanted=0, reason=reason),)


def _not_checked(models: Sequence[str], reason: str) -> CheckResults:
    return CheckResults(verdicts=tuple(Verdict(model=name, state=State.NOT_CHECKED, reason=reason) for name in models))


def _intersection(original: Dataset, secret: str, releases: Sequence[Release]) -> Verdict:
    """Whether all releases together leave everybody at least two values of a sensitive column."""
    try:
        [result] = guard_intersection(releases[0], releases[1:], original=original, l=2, column=secret)
    except NotApplicable as refusal:
        return Verdict(model=INTERSECTION, state=State.NOT_CHECKED, reason=str(refusal))
    return result.verdict


def _declared(
    release: Release, recipe: Recipe | str | Path | None
) -> tuple[dict[str, Column], Sequence[Mapping[str, Any]]]:
    """Roles and models: those of the recipe, or else those of the manifest."""
    if recipe is not None:
        parsed = recipe if isinstance(recipe, Recipe) else Recipe.load(recipe)
        return dict(parsed.schema.columns), [{model.part_name(): model.to_dict()} for model in parsed.models]
    if not release.manifest:
        raise BadParameter(
            "The release has no manifest, so its roles and models are not known.", fix="Name a recipe with --recipe."
        )
    columns = {name: Column.model_validate(value) for name, value in release.manifest.get("columns", {}).items()}
    return columns, release.manifest.get("models", ())


def _removed(release: Release) -> dict[str, Column]:
    """Roles of the columns that the recipe names, including those that were not released."""
    columns = release.manifest.get("recipe", {}).get("columns", {})
    return {name: Column.model_validate(value) for name, value in columns.items()}


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


def _at_release_levels(population: Dataset, release: pl.DataFrame, quasi: Sequence[str]) -> pl.DataFrame:
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
