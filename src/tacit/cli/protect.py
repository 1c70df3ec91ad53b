"""Run a recipe: protect the data, attack the outcome, measure it, report."""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli._console import emit_json, force_option, json_option, note, progress, seed_option, typed_path


@click.command("protect")
@click.argument("recipe", type=typed_path)
@click.argument("data", required=False)
@click.option("--out", type=typed_path, default=Path("release"), show_default=True, help="Folder of the release.")
@click.option("--format", "suffix", default=None, help="Format of the released file, for example csv or parquet.")
@click.option("--tries", type=click.IntRange(min=1), default=5000, show_default=True, help="People sought per attack.")
@click.option("--unmet", is_flag=True, help="Write the release even if a model or a limit is not met.")
@seed_option
@force_option
@json_option
def command(
    recipe: Path,
    data: str | None,
    out: Path,
    suffix: str | None,
    tries: int,
    unmet: bool,
    seed: int | None,
    force: bool,
    as_json: bool,
) -> int:
    """Run RECIPE on its own data, or on DATA (a file or a database URL) with the same columns.

    Writes the folder --out, which may leave the house, and beside it OUT-private, which may not: the internal report,
    the secret row map and the recipe. Exit code 1 when a model or a limit is not met; nothing is then written unless
    --unmet asks for it.
    """
    from tacit.recipe import Recipe
    from tacit.release.folder import private_folder, refuse_existing, release_suffix
    from tacit.verbs import protect

    if not force:
        refuse_existing(out)
    made = Recipe.load(recipe)
    source = data if data is not None else (made.source.location if made.source else "")
    ending = f".{suffix.lstrip('.')}" if suffix else release_suffix(source)
    protection = protect(made, data, seed=seed, tries=tries, progress=progress(quiet=as_json))
    if protection.unmet and not unmet and not as_json:
        from tacit.report.terminal import print_protection

        print_protection(protection.to_plain())
    document = protection.save(out, suffix=ending, force=force, unmet=unmet)
    if as_json:
        emit_json(document)
    else:
        from tacit.report.terminal import print_protection

        print_protection(document)
        note(f"\nMay leave:  {out}/  (data, release.json, report.html)")
        note(f"Keep safe:  {private_folder(out)}/  (internal report.html, row map, recipe)")
    return 1 if protection.unmet else 0
