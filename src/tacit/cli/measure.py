"""Measure what a release still says: about the people, and for its users."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli._console import emit_json, json_option, progress, seed_option, typed_path


@click.command("measure")
@click.argument("release", type=typed_path)
@click.option("--original", required=True, help="The data the release was made of.")
@click.option(
    "--measure", "names", multiple=True, help="A measure to take; may be repeated. The usual ones if left out."
)
@click.option(
    "--lineage", type=typed_path, default=None, help="The secret row map; found beside the release if left out."
)
@seed_option
@json_option
def command(
    release: Path, original: str, names: tuple[str, ...], lineage: Path | None, seed: int | None, as_json: bool
) -> None:
    """Measure RELEASE, a folder that `tacit protect` wrote, against its original: disclosure risk and utility."""
    from tacit.verbs import measure

    found = measure(
        release, original=original, measures=names, lineage=lineage, seed=seed, progress=progress(quiet=as_json)
    )
    document = {"measures": [measurement.to_plain() for measurement in found]}
    if as_json:
        emit_json(document)
    else:
        from tacit.report.terminal import print_measures

        print_measures(document["measures"])
