"""Collect answers under local differential privacy: design a survey, randomize answers, estimate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import CommandGroup, emit_json, force_option, json_option, note, typed_path
from sfumato.cli._rappor import rappor

if TYPE_CHECKING:
    from rich.table import Table as Grid

PERSON = "operator"


@click.group("collect", cls=CommandGroup)
def command() -> None:
    """Collect answers that each person randomizes on their own device (local differential privacy).

    SURVEY is a file with the questions, the expected number of people and epsilon; see docs/collecting.md.
    """


command.add_command(rappor)


@command.command("design")
@click.argument("survey", type=typed_path)
@click.option(
    "--client", type=typed_path, default=None,
    help="Write the public parameters for devices as JSON. Charges and registers a survey of a data set with a ledger.",
)  # fmt: skip
@force_option
@json_option
def design(survey: Path, client: Path | None, force: bool, as_json: bool) -> None:
    """Show protocol, expected error and privacy loss of every question before anybody is asked."""
    from sfumato.api.collect import design_survey
    from sfumato.collecting.survey import Survey

    loaded = Survey.load(survey)
    designed = design_survey(loaded, client=client, force=force)
    if as_json:
        emit_json({"survey": loaded.survey, "fingerprint": loaded.fingerprint(), **designed.to_dict()})
        return
    from rich.console import Console

    console = Console(highlight=False)
    grid = _grid("question", "protocol", "people", "bytes", "error (95 %)", "1 % dishonest move it by")
    for row in designed.questions:
        grid.add_row(
            row.question,
            row.protocol,
            f"{row.people:,}",
            str(row.bytes_per_report),
            f"± {_amount(row.error, row.unit)}",
            f"≤ {_amount(row.shift, row.unit)}",
        )
    console.print(grid)
    console.print(
        f"Privacy loss of one person: epsilon {designed.epsilon_per_report:.4g} per report, "
        f"{designed.epsilon_per_day:.4g} per day, [bold]{designed.epsilon_in_all:.4g} in all[/bold]."
    )
    if designed.shuffled is not None:
        epsilon, delta = designed.shuffled
        console.print(
            f"If the shuffler is honest, one round of {loaded.people:,} people is "
            f"({epsilon:.3g}, {delta:g})-differentially private against the collector."
        )


@command.command("randomize")
@click.argument("survey", type=typed_path)
@click.argument("answers", type=typed_path, required=False)
@click.option(
    "--answer", "given", multiple=True, metavar="QUESTION=VALUE", help="One person's answer; once per question."
)
@click.option("--memory", type=typed_path, default=None, help="File on this device that keeps the report for repeats.")
@click.option("--out", type=typed_path, default=None, help="Parquet file for the reports of the file ANSWERS.")
@force_option
def randomize(
    survey: Path, answers: Path | None, given: tuple[str, ...], memory: Path | None, out: Path | None, force: bool
) -> None:
    """Turn answers into reports.

    With --answer, print the report of one person as a line of JSON. With a file ANSWERS (one row per person, one column
    per question), write all reports to --out.
    """
    from sfumato.api.collect import randomize_answers

    if (answers is None) == (not given):
        raise click.UsageError("Give a file with answers, or --answer QUESTION=VALUE for one person.")
    if answers is None:
        split = [text.partition("=") for text in given]
        if any(not separator for _, separator, _ in split):
            raise click.UsageError("An answer is written QUESTION=VALUE.")
        emit_json(randomize_answers(survey, {name: value for name, _, value in split}, memory=memory))
        return
    if out is None:
        raise click.UsageError("Name the file for the reports with --out.")
    if memory is not None:
        raise click.UsageError("--memory is for one person's device: use it with --answer.")
    reports = randomize_answers(survey, answers, out=out, force=force)
    note(f"{out}: {len(reports):,} reports. Each person answered one question, drawn at random.")


@command.command("estimate")
@click.argument("survey", type=typed_path)
@click.argument("reports", type=typed_path, nargs=-1)
@click.option("--merge", "tallies", type=typed_path, multiple=True, help="Add a tally that --tally wrote elsewhere.")
@click.option("--tally", type=typed_path, default=None, help="Write the tally (counts of reports) as JSON.")
@click.option(
    "--engine",
    metavar="NAME",
    default=None,
    help="Count Parquet files, folders or patterns of them with an engine: duckdb or spark.",
)
@click.option(
    "--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True
)
@click.option(
    "--copies", type=click.IntRange(min=1), default=None,
    help="Most reports of one person in REPORTS, if the survey is memoized. All that it allows if left out.",
)  # fmt: skip
@force_option
@json_option
def estimate(
    survey: Path,
    reports: tuple[Path, ...],
    tallies: tuple[Path, ...],
    tally: Path | None,
    engine: str | None,
    confidence: float,
    copies: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Estimate shares, means and distributions from REPORTS (Parquet files or JSON lines), with intervals."""
    from sfumato.api.collect import estimate_survey

    if not reports and not tallies:
        raise click.UsageError("Name at least one file with reports, or a tally with --merge.")
    found = estimate_survey(survey, reports, tallies=tallies, engine=engine, confidence=confidence, copies=copies)
    if tally is not None:
        found.save_tally(tally, force=force)
    if as_json:
        emit_json(found.to_dict())
        return
    from rich.console import Console

    console = Console(highlight=False)
    for question in found.to_dict()["questions"]:
        console.print(_estimate_grid(question, confidence))


def _amount(size: float, unit: str) -> str:
    return f"{100 * size:.3g} %" if unit == "share" else f"{size:.3g}"


def _grid(*columns: str, title: str | None = None) -> Grid:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE, title=title, title_justify="left")
    for index, column in enumerate(columns):
        grid.add_column(column, justify="left" if index == 0 else "right")
    return grid


def _estimate_grid(found: dict[str, Any], confidence: float) -> Grid:
    reports, least = found["reports"], found["people_at_least"]
    people = f" of {least:,} people or more" if least < reports else ""
    title = f"{found['question']}: {reports:,} reports{people} by {found['protocol']}"
    interval = f"{100 * confidence:g} % interval"
    if "values" in found:
        grid = _grid("value", "share", interval, title=title)
        for one in found["values"]:
            low, high = 100 * one["low"] / max(1, reports), 100 * one["high"] / max(1, reports)
            grid.add_row(str(one["value"]), f"{100 * one['share']:.1f} %", f"{low:.1f} .. {high:.1f} %")
        return grid
    grid = _grid("", "estimate", interval, title=title)
    if "mean" in found:
        mean = found["mean"]
        grid.add_row("mean", f"{mean['mean']:.4g}", f"{mean['low']:.4g} .. {mean['high']:.4g}")
    for one in found.get("quantiles", ()):
        chance, low, high = 100 * one["chance"], one["low"], one["high"]
        grid.add_row(f"{chance:g} % quantile", f"{one['value']:.4g}", f"{low:.4g} .. {high:.4g}")
    return grid
