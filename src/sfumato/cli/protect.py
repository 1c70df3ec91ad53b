"""Run a recipe: mask the data, attack and measure the release, write reports."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, progress, typed_path
from sfumato.engines.choice import engine_options


@click.command("protect")
@click.argument("recipe", type=typed_path)
@click.argument("data", required=False)
@click.option("--out", type=typed_path, default=Path("release"), show_default=True, help="Folder of the release.")
@click.option("--format", "suffix", default=None, help="Format of the released file, for example csv or parquet.")
@click.option(
    "--engine",
    type=click.Choice(engine_options()),
    default="auto",
    show_default=True,
    help="Where the data is processed; auto: memory if the file fits, otherwise DuckDB.",
)
@click.option("--memory", default="4GB", show_default=True, help="Memory limit of an engine, such as DuckDB.")
@click.option("--tries", type=click.IntRange(min=1), default=5000, show_default=True, help="Targets per attack.")
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=None, help="Stop attacks and measures after this time."
)
@click.option("--unmet", is_flag=True, help="Write the release even if a model or a limit is not met.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=None,
    help="Repeat a run, together with its key. Without the key, a seed determines nothing.",
)
@click.option(
    "--key",
    type=typed_path,
    default=None,
    help="Key of the run to repeat (run.key of its private folder).  [default: that of --out if there is one, else a"
    " new random key]",
)
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
    seconds: float | None,
    unmet: bool,
    seed: int | None,
    key: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Run RECIPE on its own data, or on DATA (a file or a database URL) with the same columns.

    Writes two folders: --out, which may be published, and OUT-private, which must not be: the internal report, the
    secret row map, the recipe and the key of the random numbers. Exit code 1 if a model or a limit is not met; nothing
    is written then, unless --unmet is set. With --seconds, inexpensive attacks run first, what was not reached is shown
    as stopped, and a limit whose attack was not reached is not met.

    A recipe with a key `graph` is for a graph: edge tables, and a node table.
    """
    from sfumato.recipe.graph_recipe import is_graph_recipe
    from sfumato.release.folder import private_folder, refuse_existing, release_suffix, stored_key

    if is_graph_recipe(recipe):
        from sfumato.cli._graph import protect_graph, refuse_options

        refuse_options({"DATA": data, "--format": suffix, "--engine": None if engine in ("auto", "memory") else engine})
        return protect_graph(
            recipe, out, unmet=unmet, force=force, as_json=as_json, seed=seed, key=key or stored_key(out),
            n_targets=tries, seconds=seconds,
        )  # fmt: skip
    from sfumato.api import protect
    from sfumato.api.protection import InMemoryProtection
    from sfumato.data.format import format_for
    from sfumato.recipe import Recipe

    refuse_existing(out, force=force)
    parsed = Recipe.load(recipe)
    source = data if data is not None else (parsed.source.location if parsed.source else "")
    ending = f".{suffix.lstrip('.')}" if suffix else None
    format_for(Path(f"data{ending or release_suffix(source)}"))  # an unknown format is refused before the work
    protection = protect(
        parsed,
        data,
        seed=seed,
        key=key or stored_key(out),
        n_targets=tries,
        seconds=seconds,
        engine=engine,
        memory=memory,
        suffix=ending or ".parquet",
        workspace=out.absolute().parent,
        progress=progress(quiet=as_json),
    )
    if protection.unmet and not unmet and not as_json:
        from sfumato.reports.terminal import print_protection

        print_protection(protection.to_dict())
    if ending is None and isinstance(protection, InMemoryProtection):
        ending = release_suffix(source)
    document = protection.save(out, suffix=ending, force=force, unmet=unmet)
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_protection

        print_protection(document)
        place = f"{out}/  (data, README, codebook, release.json, report.html)"
        note("\n" + protection.evaluation.judgement.standing.line(place))
        note(f"Keep private:  {private_folder(out)}/  (internal report, row map, recipe, key)")
    return 1 if protection.unmet else 0
