"""Measure disclosure risk and utility of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import (
    chosen,
    json_option,
    names_of,
    option_names,
    parts_of,
    place_options,
    progress,
    seed_option,
    show,
    typed_path,
)

PERSON = "researcher"


@click.command("measure")
@click.argument("release", type=typed_path)
@click.option(
    "--original", default=None, help="The table the release was made from; of a graph or tables, the recipe or plan."
)
@click.option(
    "--measure",
    "measures",
    multiple=True,
    callback=parts_of,
    help="A measure to compute, by name or name=parameters; may be repeated. Default: the usual ones.",
)
@click.option(
    "--knows", multiple=True, callback=names_of, help="Quasi-identifiers, separated by commas, without a manifest."
)
@click.option("--secret", "secrets", multiple=True, callback=names_of, help="Sensitive columns, separated by commas.")
@click.option("--recipe", "schema", type=typed_path, default=None, help="Roles, for a release without a manifest.")
@click.option(
    "--lineage",
    type=typed_path,
    default=None,
    help="The row map, which is secret. Default: the one beside the release.",
)
@click.option("--label", default=None, help="Model: the column that it predicts.")
@place_options
@seed_option
@json_option
def command(release: Path, schema: Path | None, as_json: bool, **options: Any) -> int:
    """Measure disclosure risk and utility of RELEASE against its original.

    RELEASE is a folder that `sfumato protect` wrote, or any data file; then roles come from --knows and --secret or
    from a recipe. Of a graph, tables or statistics, --original is the recipe or plan, which names the data; of a model,
    it is test data or the training data.
    """
    from sfumato.api.measure import measure

    if schema is not None:
        from sfumato.recipe import Recipe

        options["schema"] = Recipe.load(schema).schema
    with option_names():
        results = measure(release, progress=progress(quiet=as_json), **chosen(options))
    return show(results, as_json=as_json)
