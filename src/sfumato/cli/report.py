"""Write the report of a release, internal or external."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sfumato.reports import Audience

from sfumato.cli._console import force_option, json_option, typed_path

PERSON = "steward"


@click.command("report")
@click.argument("release", type=typed_path)
@click.option("--audience", type=click.Choice(["internal", "external"]), default="internal", show_default=True)
@click.option("--out", type=typed_path, default=Path("report.html"), show_default=True, help="The HTML file to write.")
@force_option
@json_option
def command(release: Path, audience: Audience, out: Path, force: bool, as_json: bool) -> None:
    """Write the report of RELEASE as one offline HTML file, from the private folder beside it.

    The external report contains no count of the original: no row counts, no suppressed records, no pictures of columns
    before masking.
    """
    from sfumato.api.report import report, report_page

    if as_json:
        click.echo(report_page(release, audience=audience).json)
        return
    click.echo(f"Report: {report(release, out=out, audience=audience, force=force).resolve()}")
