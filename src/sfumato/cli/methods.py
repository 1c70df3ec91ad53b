"""List all methods, models, attacks and measures, or show one."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, typed_path

PERSON = "researcher"


@click.command("methods")
@click.argument("name", required=False)
@click.option("--kind", default=None, help="List only this kind: method, model, attack, measure, ...")
@click.option("--write", type=typed_path, default=None, help="Write all reference pages to this folder.")
@json_option
@click.pass_context
def command(context: click.Context, name: str | None, kind: str | None, write: Path | None, as_json: bool) -> None:
    """List all registered parts, or show the reference page of NAME."""
    from sfumato.errors import UnknownPart
    from sfumato.manual import page, write_manual
    from sfumato.registry import KINDS, registry
    from sfumato.wording import did_you_mean

    if write is not None:
        write_manual(write, context.find_root().command)
        return
    kinds = [kind] if kind else list(KINDS)
    if name is not None:
        matches = [(k, registry(k).get(name)) for k in kinds if name in registry(k)]
        if not matches:
            known = [n for k in kinds for n in registry(k).names()]
            raise UnknownPart(f"There is no part `{name}`.", fix=did_you_mean(name, known))
        if as_json:
            emit_json({"parts": [{"kind": k, "name": name, "schema": c.model_json_schema()} for k, c in matches]})
        else:
            click.echo("\n".join(page(k, c) for k, c in matches))
        return
    listed = [(k, cls.part_name(), cls.summary()) for k in kinds for cls in registry(k)]
    if as_json:
        emit_json({"parts": [{"kind": k, "name": n, "summary": s} for k, n, s in listed]})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("kind", "name", "what it does"):
        table.add_column(column, no_wrap=column != "what it does")
    for row in listed:
        table.add_row(*row)
    Console().print(table)
