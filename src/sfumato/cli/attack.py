"""Attack a release, yours or somebody else's, before others do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, listed, note, progress, seed_option, typed_path


@click.command("attack")
@click.argument("release", type=typed_path)
@click.option("--original", required=True, help="The data the release was made of: what is true.")
@click.option("--auxiliary", default=None, help="The intruder's own file about people, with names.")
@click.option(
    "--rename", multiple=True, help="Columns that this file calls otherwise: theirs=ours, separated by commas."
)
@click.option("--control", default=None, help="People who are not in the release, with the original's columns.")
@click.option("--knows", multiple=True, help="Columns the intruder knows, separated by commas; may be repeated.")
@click.option("--secret", "secrets", multiple=True, help="Columns that must not become known, separated by commas.")
@click.option("--recipe", type=typed_path, default=None, help="Roles, for a release without a manifest.")
@click.option(
    "--attack", "names", multiple=True, help="An attack to run; may be repeated. A fitting battery if left out."
)
@click.option(
    "--lineage", type=typed_path, default=None, help="The secret row map; found beside the release if left out."
)
@click.option("--key", default=None, help="Column that identifies rows in both files, where there is no row map.")
@click.option("--row", "people", type=click.IntRange(min=1), multiple=True, help="Seek this row of the original only.")
@click.option("--aligned", is_flag=True, help="Rows of the release stand in the order of the original.")
@click.option(
    "--limit", type=click.FloatRange(0, 1), default=None, help="Exit with 1 if the risk may exceed this share."
)
@click.option("--tries", type=click.IntRange(min=1), default=5000, show_default=True, help="People sought per attack.")
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=None, help="Stop after so long, with what was found by then."
)
@seed_option
@json_option
def command(
    release: Path,
    original: str,
    auxiliary: str | None,
    rename: tuple[str, ...],
    control: str | None,
    knows: tuple[str, ...],
    secrets: tuple[str, ...],
    recipe: Path | None,
    names: tuple[str, ...],
    lineage: Path | None,
    key: str | None,
    people: tuple[int, ...],
    aligned: bool,
    limit: float | None,
    tries: int,
    seconds: float | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Attack RELEASE, a folder that `sfumato protect` wrote or any data file, and say what an intruder gets.

    A data file says nothing about roles: name what the intruder knows and what is secret with --knows and --secret, or
    give a recipe (`sfumato init ORIGINAL` writes one). Whether he found the right person can be judged if a row map, a
    --key or --aligned says whose rows are whose; what he learns of secrets can be judged without.

    The risk of each attack is the share of people it got right, with a 95 % interval, next to what an intruder gets
    right without it (baseline) and on people who are not in the release (control). An attack that does not apply says
    why and has no risk, not a risk of 0. After --seconds, attacks stop where they are: the people sought so far are
    counted, with an interval as wide as their number says; an attack that got nowhere has no risk, and no limit is met
    that it would have been judged by.
    """
    from sfumato.api import attack
    from sfumato.recipe import Recipe
    from sfumato.release.folder import load_lineage, load_release

    begun = time.monotonic()
    opened = load_release(release)
    if not opened.manifest and not (knows or secrets or recipe):
        note("The release has no manifest with roles: name columns with --knows and --secret, or a --recipe.")
    beside = load_lineage(release) if release.is_dir() else None
    results = attack(
        opened,
        original=original,
        attacks=names,
        auxiliary=auxiliary,
        control=control,
        rename=_pairs(listed(rename)),
        knows=listed(knows) or None,
        secrets=listed(secrets),
        schema=Recipe.load(recipe).schema if recipe is not None else None,
        lineage=lineage if lineage is not None else beside,
        key=key,
        people=[row - 1 for row in people] or None,
        aligned=aligned,
        seed=seed,
        n_targets=tries,
        seconds=None if seconds is None else max(0.0, seconds - (time.monotonic() - begun)),
        limit=limit,
        progress=progress(quiet=as_json),
    )
    document = results.to_dict()
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_attacks

        print_attacks(document["attacks"], document["limits"], changes=document.get("advice", ()))
    return 0 if all(entry.met for entry in results.limits) else 1


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    """Parse each `theirs=ours`."""
    names: dict[str, str] = {}
    for text in texts:
        theirs, sign, ours = (part.strip() for part in text.partition("="))
        if not (theirs and sign and ours):
            raise click.BadParameter(f"{text!r} is not of the form theirs=ours.", param_hint="--rename")
        names[theirs] = ours
    return names
