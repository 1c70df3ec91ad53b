"""Measure disclosure risk and utility of a release."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, listed, progress, seed_option, typed_path


@click.command("measure")
@click.argument("release", type=typed_path)
@click.option("--original", required=True, help="The table the release was made from.")
@click.option(
    "--measure", "names", multiple=True, help="A measure to compute; may be repeated. Default: the usual ones."
)
@click.option("--knows", multiple=True, help="Quasi-identifiers, separated by commas, if there is no manifest.")
@click.option("--secret", "secrets", multiple=True, help="Sensitive columns, separated by commas.")
@click.option("--recipe", type=typed_path, default=None, help="Roles, for a release without a manifest.")
@click.option(
    "--lineage", type=typed_path, default=None, help="The secret row map. Default: the one beside the release."
)
@seed_option
@json_option
def command(
    release: Path,
    original: str,
    names: tuple[str, ...],
    knows: tuple[str, ...],
    secrets: tuple[str, ...],
    recipe: Path | None,
    lineage: Path | None,
    seed: int | None,
    as_json: bool,
) -> None:
    """Measure disclosure risk and utility of RELEASE against its original.

    RELEASE is a folder that `sfumato protect` wrote, or any data file; then roles come from --knows and --secret or
    from a recipe.
    """
    from sfumato.release.folder import is_graph_release

    if is_graph_release(release):
        from sfumato.cli._graph import measure_graph, refuse_options

        refuse_options({"--knows": knows, "--secret": secrets, "--recipe": recipe, "--lineage": lineage})
        measure_graph(release, original, measures=names, seed=seed, as_json=as_json)
        return
    from sfumato.api import measure
    from sfumato.recipe import Recipe

    results = measure(
        release,
        original=original,
        measures=names,
        knows=listed(knows) or None,
        secrets=listed(secrets),
        schema=Recipe.load(recipe).schema if recipe is not None else None,
        lineage=lineage,
        seed=seed,
        progress=progress(quiet=as_json),
    )
    document = results.to_dict()
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_measures

        print_measures(document["measures"])
