"""Check a release once more, independently: does it meet the models it names?"""

from __future__ import annotations

from pathlib import Path

import click

from tacit.cli._console import emit_json, json_option, typed_path


@click.command("check")
@click.argument("release", type=typed_path)
@click.option("--original", type=typed_path, default=None, help="The data it was made of: the reference distribution.")
@click.option("--population", type=typed_path, default=None, help="The population table, for models that count people.")
@click.option("--recipe", type=typed_path, default=None, help="Roles and models, for a release without a manifest.")
@json_option
def command(release: Path, original: Path | None, population: Path | None, recipe: Path | None, as_json: bool) -> int:
    """Check RELEASE, a folder that `tacit protect` wrote or any table, by plain GROUP BY statements.

    The code shares nothing with the search that made the release. Models that compare with the distribution of the
    whole table take it from --original, or else from the release itself. Exit code 1 when a model fails or could not be
    checked.
    """
    from tacit.checking import check_release

    verdicts = check_release(release, original=original, population=population, recipe=recipe)
    document = {"release": str(release), "verdicts": [verdict.to_plain() for verdict in verdicts]}
    if as_json:
        emit_json(document)
    else:
        from rich.console import Console

        from tacit.report.terminal import verdict_lines

        Console().print(verdict_lines(document["verdicts"]))  # type: ignore[arg-type]
    return 0 if verdicts and all(verdict.holds for verdict in verdicts) else 1
