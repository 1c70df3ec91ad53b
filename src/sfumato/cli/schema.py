"""Print the JSON Schema of recipes."""

from __future__ import annotations

import json

import click

PERSON = "steward"


@click.command("schema")
def command() -> None:
    """Print the JSON Schema of recipes (sfumato.yaml), including all registered parts."""
    from sfumato.recipe.json_schema import json_schema

    click.echo(json.dumps(json_schema(), indent=1, ensure_ascii=False))
