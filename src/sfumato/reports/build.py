"""Build the data of a report from a recipe and the evaluation of its release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from sfumato.data.table import Table
from sfumato.data.url import file_and_options
from sfumato.evaluation import Evaluation
from sfumato.recipe import Recipe
from sfumato.release import Lineage
from sfumato.release.public_folder import promised
from sfumato.reports.column_table import column_summaries
from sfumato.reports.columns import column_pictures
from sfumato.reports.report_data import ReportData
from sfumato.reports.versions import versions


def build_report(
    recipe: Recipe,
    evaluation: Evaluation,
    *,
    steps: Sequence[Mapping[str, object]],
    original: Table | None = None,
    release: Table | None = None,
    lineage: Lineage | None = None,
    source: object = None,
    original_rows: int | None = None,
) -> ReportData:
    """The report of an evaluated release. Without the two tables it has no pictures of columns.

    ``lineage`` gives the owner's report an example of each change. ``source`` is where the data was read from instead
    of the recipe's own file. ``original_rows`` is needed only where the original was not read into memory.
    """
    results = evaluation.to_dict()
    place = source if isinstance(source, str | Path) else recipe.source.location if recipe.source else None
    name = "a table" if place is None else Path(file_and_options(place)[0]).stem
    return ReportData(
        title=recipe.title or f"Release of {name}",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        manifest=evaluation.manifest,
        files={},
        recipe_public=recipe.public(),
        recipe=recipe.to_dict(),
        original_rows=original_rows if original is None else original.rows,
        original_columns=None if original is None else original.columns,
        outcomes=tuple(steps),
        verdicts=tuple(results["verdicts"]),
        attacks_before=tuple(results["attacks_before"]),
        attacks=tuple(results["attacks"]),
        measures=tuple(results["measures"]),
        limits=tuple(results["limits"]),
        columns=column_pictures(original, release, evaluation.manifest) if original and release else (),
        released_columns=column_pictures(release, release, evaluation.manifest)
        if release is not None and promised(evaluation.manifest)
        else (),
        column_table=column_summaries(evaluation.manifest, original=original, release=release, lineage=lineage),
        about=recipe.about.to_dict(),
        riskiest=None if original is None else evaluation.riskiest_rows(),
    )
