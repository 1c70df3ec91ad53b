"""Check the privacy models of a release with independent code."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, note, typed_path


@click.command("check")
@click.argument("release", type=typed_path)
@click.option("--original", default=None, help="The table the release was made from: the reference distribution.")
@click.option("--population", default=None, help="The population table, for models such as k-map.")
@click.option("--recipe", type=typed_path, default=None, help="Roles and models, for a release without a manifest.")
@click.option("--earlier", type=typed_path, multiple=True, help="An earlier release; may be repeated.")
@json_option
def command(
    release: Path,
    original: str | None,
    population: str | None,
    recipe: Path | None,
    earlier: tuple[Path, ...],
    as_json: bool,
) -> int:
    """Check RELEASE, a folder that `sfumato protect` wrote or any table, by plain GROUP BY statements.

    The code is independent of the search that made the release. Models that compare with the distribution of the whole
    table take it from --original, or else from the release itself. With --earlier (and --original) the check also
    covers what this release and earlier ones disclose together. Exit code 1 if a model fails or could not be checked.
    """
    from sfumato.release.folder import is_graph_release

    if is_graph_release(release):
        from sfumato.cli._graph import check_graph, refuse_options

        refuse_options({"--population": population, "--recipe": recipe, "--earlier": earlier})
        return check_graph(release, original, as_json=as_json)
    from sfumato.api import check

    results = check(release, original=original, population=population, recipe=recipe, earlier=earlier)
    if not results:
        note("No privacy model is named, so nothing was checked. Name models in a recipe and pass it with --recipe.")
    if as_json:
        emit_json({"release": str(release), **results.to_dict()})
    else:
        from rich.console import Console

        from sfumato.reports.terminal import verdict_lines

        Console().print(verdict_lines(results.entries()))
    return 0 if results.holds else 1
