"""Write the report of a release again, for the owner or for others."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import force_option, json_option, typed_path


@click.command("report")
@click.argument("release", type=typed_path)
@click.option("--audience", type=click.Choice(["internal", "external"]), default="internal", show_default=True)
@click.option("--out", type=typed_path, default=Path("report.html"), show_default=True, help="The HTML file to write.")
@force_option
@json_option
def command(release: Path, audience: str, out: Path, force: bool, as_json: bool) -> None:
    """Write the report of RELEASE (its private folder lies beside it) as one offline HTML file.

    The external report says nothing that is counted on the original: no row counts, no suppressed records, no
    pictures of columns before.
    """
    import json

    from sfumato.data.atomic import replacing
    from sfumato.errors import BadParameter, FileMissing, NotThatFormat
    from sfumato.release.folder import private_folder
    from sfumato.reports import ReportData, report_json, write_report

    twin = private_folder(release) / "report.json"
    if not twin.is_file():
        raise FileMissing(f"There is no {twin}.", fix="Reports are made from the private folder beside the release.")
    if not as_json and out.resolve().is_relative_to(release.resolve()):
        raise BadParameter(
            f"{out} lies in the release, which leaves the house as it was made: its manifest names every file.",
            fix="Name a file outside the release with --out.",
        )
    try:
        account = ReportData.from_dict(json.loads(twin.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise NotThatFormat(f"{twin} is not the account of a release.", fix="Make the release again.") from None
    told = account.told_to("external" if audience == "external" else "internal")
    if as_json:
        click.echo(report_json(told, told.audience))
        return
    with replacing(out, force=force) as temporary:
        write_report(told, temporary, audience=told.audience)
    click.echo(f"Report: {out.resolve()}")
