"""Collect answers under local differential privacy: design a survey, randomize answers, estimate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import CommandGroup, emit_json, force_option, json_option, note, typed_path
from sfumato.cli._rappor import rappor

if TYPE_CHECKING:
    from rich.table import Table as Grid

    from sfumato.collecting.collector import QuestionEstimate
    from sfumato.collecting.survey import Survey

PERSON = "operator"


@click.group("collect", cls=CommandGroup)
def command() -> None:
    """Collect answers that each person randomizes on their own device (local differential privacy).

    SURVEY is a file with the questions, the expected number of people and epsilon; see docs/collecting.md.
    """


command.add_command(rappor)


@command.command("design")
@click.argument("survey", type=typed_path)
@click.option("--client", type=typed_path, default=None, help="Write the public parameters for a web page as JSON.")
@force_option
@json_option
def design(survey: Path, client: Path | None, force: bool, as_json: bool) -> None:
    """Show protocol, expected error and privacy loss of every question before anybody is asked."""
    from sfumato.collecting.client_design import client_design
    from sfumato.collecting.design import design_survey
    from sfumato.collecting.survey import Survey
    from sfumato.data.atomic import replacing

    loaded = Survey.load(survey)
    designed = design_survey(loaded)
    if client is not None:
        with replacing(client, force=force) as temporary:
            temporary.write_text(json.dumps(client_design(loaded), indent=1) + "\n", encoding="utf-8")
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
    from sfumato.collecting.device import randomize_answer, randomize_table, write_reports
    from sfumato.collecting.survey import Survey
    from sfumato.data.declared import kind_of_values, read_declared

    loaded = Survey.load(survey)
    if (answers is None) == (not given):
        raise click.UsageError("Give a file with answers, or --answer QUESTION=VALUE for one person.")
    if answers is None:
        split = [text.partition("=") for text in given]
        if any(not separator for _, separator, _ in split):
            raise click.UsageError("An answer is written QUESTION=VALUE.")
        emit_json(randomize_answer(loaded, {name: value for name, _, value in split}, memory=memory))
        return
    if out is None:
        raise click.UsageError("Name the file for the reports with --out.")
    kinds = {n: "number" if one.values is None else kind_of_values(one.values) for n, one in loaded.questions.items()}
    reports = randomize_table(loaded, read_declared(answers, kinds))
    write_reports(loaded, reports, out, force=force)
    note(f"{out}: {reports.height:,} reports. Each person answered one question, drawn at random.")


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
    from sfumato.collecting.collector import Collection
    from sfumato.collecting.survey import Survey
    from sfumato.data.atomic import replacing

    loaded = Survey.load(survey)
    if not reports and not tallies:
        raise click.UsageError("Name at least one file with reports, or a tally with --merge.")
    if engine is not None and reports:
        from sfumato.collecting.report_scan import parquet_files, tally_reports

        collection = tally_reports(engine, loaded, parquet_files(reports))
    else:
        collection = Collection(loaded)
        for path in reports:
            collection.add_file(path)
    for path in tallies:
        collection.merge(_stored(path))
    if tally is not None:
        with replacing(tally, force=force) as temporary:
            temporary.write_text(json.dumps(collection.to_dict()), encoding="utf-8")
    estimates = collection.estimate(confidence=confidence, copies=copies)
    if as_json:
        emit_json(
            {"survey": loaded.survey, "confidence": confidence, "questions": [_plain(e, loaded) for e in estimates]}
        )
        return
    from rich.console import Console

    console = Console(highlight=False)
    for found in estimates:
        console.print(_estimate_grid(found, loaded, confidence))


def _stored(path: Path) -> dict[str, Any]:
    from sfumato.data.yaml_documents import read_text_file
    from sfumato.errors import NotThatFormat

    try:
        stored = json.loads(read_text_file(path, kind="tally", fix="Write it with --tally."))
        if isinstance(stored, dict) and isinstance(stored.get("questions"), dict):
            return stored
    except ValueError:
        pass
    raise NotThatFormat(f"{path} is not a tally.", fix="Write it with --tally.", path=str(path))


def _amount(size: float, unit: str) -> str:
    return f"{100 * size:.3g} %" if unit == "share" else f"{size:.3g}"


def _grid(*columns: str, title: str | None = None) -> Grid:
    from rich import box
    from rich.table import Table as Grid

    grid = Grid(box=box.SIMPLE, title=title, title_justify="left")
    for index, column in enumerate(columns):
        grid.add_column(column, justify="left" if index == 0 else "right")
    return grid


def _estimate_grid(found: QuestionEstimate, survey: Survey, confidence: float) -> Grid:
    people = f" of {found.people:,} people or more" if found.people < found.reports else ""
    title = f"{found.question}: {found.reports:,} reports{people} by {found.protocol}"
    interval = f"{100 * confidence:g} % interval"
    if found.frequencies is not None:
        grid = _grid("value", "share", interval, title=title)
        estimate = found.frequencies
        n = max(1, estimate.reports)
        for index, value in enumerate(survey.questions[found.question].values or ()):
            low, high = 100 * estimate.low[index] / n, 100 * estimate.high[index] / n
            grid.add_row(str(value), f"{100 * estimate.shares[index]:.1f} %", f"{low:.1f} .. {high:.1f} %")
        return grid
    grid = _grid("", "estimate", interval, title=title)
    if found.mean is not None:
        grid.add_row("mean", f"{found.mean.mean:.4g}", f"{found.mean.low:.4g} .. {found.mean.high:.4g}")
    for chance, level, low, high in found.quantiles:
        grid.add_row(f"{100 * chance:g} % quantile", f"{level:.4g}", f"{low:.4g} .. {high:.4g}")
    return grid


def _plain(found: QuestionEstimate, survey: Survey) -> dict[str, Any]:
    shared = {"question": found.question, "protocol": found.protocol, "reports": found.reports}
    document: dict[str, Any] = {**shared, "people_at_least": found.people}
    if found.frequencies is not None:
        estimate = found.frequencies
        values = survey.questions[found.question].values or ()
        document["values"] = [
            {"value": value, "count": float(count), "share": float(share), "low": float(low), "high": float(high)}
            for value, count, share, low, high in zip(
                values, estimate.counts, estimate.shares, estimate.low, estimate.high, strict=True
            )
        ]
    if found.mean is not None:
        document["mean"] = {"mean": found.mean.mean, "low": found.mean.low, "high": found.mean.high}
    if found.quantiles:
        names = ("chance", "value", "low", "high")
        document["quantiles"] = [dict(zip(names, row, strict=True)) for row in found.quantiles]
        document["histogram"] = list(found.histogram)
    return document
