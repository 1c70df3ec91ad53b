"""Check what a release promises with independent code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import chosen, json_option, note, option_names, place_options, show, typed_path

PERSON = "steward"


@click.command("check")
@click.argument("release", type=typed_path)
@click.option("--original", default=None, help="The table the release was made from: the reference distribution.")
@click.option("--population", default=None, help="The population table, for models such as k-map.")
@click.option("--recipe", type=typed_path, default=None, help="Roles and models, for a release without a manifest.")
@click.option("--earlier", type=typed_path, multiple=True, help="An earlier release; may be repeated.")
@place_options
@json_option
def command(release: Path, as_json: bool, **options: Any) -> int:
    """Check RELEASE: a folder that `sfumato protect` wrote, any table, or a plan whose kind is checked.

    The code is independent of the code that made the release: privacy models of a table are checked by plain GROUP BY
    statements. Models that compare with the distribution of the whole table take it from --original, or else from the
    release itself. With --earlier (and --original) the check also covers what this release and earlier ones disclose
    together. Exit code 1 if a model fails or could not be checked.
    """
    from sfumato.api.check import check

    with option_names():
        results = check(release, **chosen(options))
    if not results:
        note("No privacy model is named, so nothing was checked. Name models in a recipe and pass it with --recipe.")
    return show(results, as_json=as_json, release=str(release))
