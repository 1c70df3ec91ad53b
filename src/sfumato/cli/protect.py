"""Run a recipe: protect the data, attack the outcome, measure it, report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, progress, seed_option, typed_path


@click.command("protect")
@click.argument("recipe", type=typed_path)
@click.argument("data", required=False)
@click.option("--out", type=typed_path, default=Path("release"), show_default=True, help="Folder of the release.")
@click.option("--format", "suffix", default=None, help="Format of the released file, for example csv or parquet.")
@click.option(
    "--engine",
    type=click.Choice(["auto", "memory", "duckdb", "spark"]),
    default="auto",
    show_default=True,
    help="Where rows are worked on; auto takes memory if the file fits, else DuckDB.",
)
@click.option("--memory", default="4GB", show_default=True, help="What DuckDB or Spark may take before it spills.")
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
    engine: str,
    memory: str,
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
    from sfumato.api import protect, protect_large
    from sfumato.data.format import format_for
    from sfumato.recipe import Recipe
    from sfumato.release.folder import refuse_existing, release_suffix

    refuse_existing(out, force=force)
    made = Recipe.load(recipe)
    source = data if data is not None else (made.source.location if made.source else "")
    ending = f".{suffix.lstrip('.')}" if suffix else release_suffix(source)
    format_for(Path(f"data{ending}"))  # an unknown format is refused before the work
    if engine == "auto":
        engine = "memory" if _fits(source) else "duckdb"
    if engine != "memory":
        document = protect_large(
            made,
            out,
            data=data,
            engine=engine,
            memory=memory,
            suffix=f".{suffix.lstrip('.')}" if suffix else ".parquet",
            seed=seed,
            force=force,
            unmet=unmet,
            progress=progress(quiet=as_json),
        )
        return _show(document, out, as_json=as_json)
    protection = protect(made, data, seed=seed, tries=tries, progress=progress(quiet=as_json))
    if protection.unmet and not unmet and not as_json:
        from sfumato.reports.terminal import print_protection

        print_protection(protection.to_dict())
    document = protection.save(out, suffix=ending, force=force, unmet=unmet)
    return _show(document, out, as_json=as_json)


def _fits(source: str) -> bool:
    """Whether the source may be read whole; what is no local file is streamed by its own reader."""
    from sfumato.data import size_hint
    from sfumato.data.url import file_and_options

    return "://" in source or not Path(file_and_options(source)[0]).is_file() or size_hint(source).fits


def _show(document: dict[str, Any], out: Path, *, as_json: bool) -> int:
    from sfumato.release.folder import private_folder

    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import plain_text, print_protection

        print_protection(document)
        if document.get("undeclared"):
            names = ", ".join(plain_text(name) for name in document["undeclared"])
            note(f"\nNot named in the recipe, released as they are: {names}")
        note(f"\nMay leave:  {out}/  (data, release.json, report.html)")
        note(f"Keep safe:  {private_folder(out)}/  (internal report, row map, recipe)")
    held = all(verdict["state"] == "holds" for verdict in document["verdicts"])
    return 0 if held and all(limit["met"] for limit in document["limits"]) else 1
