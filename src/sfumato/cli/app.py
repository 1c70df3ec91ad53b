"""Open the app in a browser: from a file to a report, on this machine only."""

from __future__ import annotations

import click

from sfumato.cli._console import note

PERSON = "steward"


@click.command("app")
@click.argument("data", required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on 127.0.0.1. Default: a free one.")
@click.option("--browser/--no-browser", default=True, show_default=True, help="Open the page in the default browser.")
def command(data: str | None, port: int, browser: bool) -> None:
    """Open DATA (a data file, a database URL or a recipe) in a browser; without it, choose one there.

    The app listens on 127.0.0.1 only and asks no other host. The printed link works once; when it is used, the next one
    is printed. Every change is written to the recipe (`sfumato.yaml` beside the data), which the command line runs
    unchanged. Press Ctrl+C to end the app.
    """
    from sfumato.app.serve import serve

    serve(data, port=port, browser=browser, write=note)
