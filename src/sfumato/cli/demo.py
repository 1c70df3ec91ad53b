"""See what can go wrong with data about people, and what helps."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, json_option, progress, typed_path


@click.command("demo")
@click.argument("name", default="hospital")
@click.option("--list", "listing", is_flag=True, help="Name the demos and end.")
@click.option("--out", type=typed_path, default=Path("demo"), show_default=True, help="Folder for the demo's files.")
@click.option("--seed", type=click.IntRange(min=0), default=7, show_default=True, help="Another seed, other people.")
@json_option
def command(name: str, listing: bool, out: Path, seed: int, as_json: bool) -> None:
    """Tell the story NAME: by default the hospital file of Massachusetts, with made-up people."""
    from sfumato.demos.story import Story
    from sfumato.registry import registry

    if listing:
        stories = [{"name": cls.part_name(), "summary": cls.summary()} for cls in registry("demo")]
        if as_json:
            emit_json({"demos": stories})
        else:
            for entry in stories:
                click.echo(f"{entry['name']:<16} {entry['summary']}")
        return
    story = registry("demo").get(name).build({"seed": seed})
    assert isinstance(story, Story)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    if as_json:
        emit_json(story.tell(folder, lambda _text: None))
        return
    from rich.console import Console

    console = Console(highlight=False)

    def say(text: str) -> None:
        # A path or a command, which stands behind two spaces, is copied whole: it must not be broken.
        console.print(text, soft_wrap=":  " in text)

    story.tell(folder, say, progress())
