"""Write one of the small tables that the docs' examples use."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path

PERSON = "researcher"


@click.command("datasets")
@click.argument("name", required=False)
@click.option("--out", type=typed_path, default=None, help="File to write the table to.  [default: NAME.csv]")
@force_option
@json_option
def command(name: str | None, out: Path | None, force: bool, as_json: bool) -> None:
    """Write the table NAME of the field's worked examples as a CSV file; without NAME, list the tables.

    The tables are those that papers and lectures print. The list states where each comes from and its licence.
    """
    from sfumato import datasets
    from sfumato.data.atomic import replacing

    if name is None:
        if out is not None:
            raise click.UsageError("Name a table to write.")
        origins = [datasets.about(each) for each in datasets.names()]
        if as_json:
            emit_json({"datasets": [asdict(origin) for origin in origins]})
            return
        for origin in origins:
            click.echo(f"{origin.name:<18} {origin.title}\n{'':<18} {origin.source}")
        return
    target = out or Path(f"{name}.csv")
    content = datasets.place(name).read_bytes()
    with replacing(target, force=force) as temporary:
        temporary.write_bytes(content)
    if as_json:
        emit_json({**asdict(datasets.about(name)), "file": str(target)})
    else:
        note(f"{target}: {datasets.about(name).title}.")
