"""Run a demo with synthetic data."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, progress, typed_path

PERSON = "steward"


@click.command("demo")
@click.argument("name", default="hospital")
@click.option("--list", "listing", is_flag=True, help="List the demos.")
@click.option("--out", type=typed_path, default=Path("demo"), show_default=True, help="Folder for the demo's files.")
@click.option("--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Seed of the synthetic data.")
@json_option
def command(name: str, listing: bool, out: Path, seed: int, as_json: bool) -> None:
    """Run the demo NAME; by default the re-identification of a hospital file, with synthetic people."""
    from sfumato.demos.base import Demo
    from sfumato.registry import registry

    if listing:
        demos = [{"name": cls.part_name(), "summary": cls.summary()} for cls in registry("demo")]
        if as_json:
            emit_json({"demos": demos})
        else:
            for entry in demos:
                click.echo(f"{entry['name']:<16} {entry['summary']}")
        return
    demo = registry("demo").get(name).build({"seed": seed})
    assert isinstance(demo, Demo)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    if as_json:
        emit_json(demo.run(folder, lambda _text: None))
        return
    from rich.console import Console

    console = Console(highlight=False)

    def say(text: str) -> None:
        # A path or a command follows two spaces and must not be wrapped, so that it can be copied.
        console.print(text, soft_wrap=":  " in text)

    demo.run(folder, say, progress())
