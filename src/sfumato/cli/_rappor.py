"""RAPPOR on the command line: losses of a plan, reports of a device, estimates from reports."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from sfumato.cli._console import CommandGroup, emit_json, force_option, json_option, note, typed_path


@click.group("rappor", cls=CommandGroup)
def rappor() -> None:
    """RAPPOR: words in Bloom filters, a permanent response that is kept and an instantaneous one per report.

    PLAN is a file with `survey`, `words` and `rappor` (bits, hashes, cohorts, f, p, q, salt); see docs/collecting.md.
    """


@rappor.command("design")
@click.argument("plan", type=typed_path)
@json_option
def design(plan: Path, as_json: bool) -> None:
    """Show both privacy losses of PLAN: of one report, and of all reports of a device."""
    from sfumato.collecting.rappor_device import RapporPlan

    loaded = RapporPlan.load(plan)
    one, zero = (float(chance) for chance in loaded.rappor.report_chances())
    losses = {
        "one_report": float(loaded.rappor.loss_of_one_report().size),
        "all_reports_of_a_word": float(loaded.rappor.loss_of_all_reports().size),
        "device": float(loaded.loss_of_device().size),
    }
    if as_json:
        emit_json({"survey": loaded.survey, "epsilon": losses, "one_if_one": one, "one_if_zero": zero})
        return
    click.echo(f"A bit is sent as 1 with probability {one:.4g} if it is 1, {zero:.4g} if it is 0.")
    click.echo(
        f"Privacy loss: epsilon {losses['one_report']:.4g} of one report, {losses['all_reports_of_a_word']:.4g} of all "
        f"reports of one word, {losses['device']:.4g} of a device in all."
    )


@rappor.command("report")
@click.argument("plan", type=typed_path)
@click.argument("words", type=typed_path, required=False)
@click.option("--word", default=None, help="The word of this device.")
@click.option("--memory", type=typed_path, default=None, help="File on this device that keeps its permanent response.")
@click.option("--column", default=None, help="Column of WORDS, for trials: one row per device.")
@click.option("--out", type=typed_path, default=None, help="File for the reports of WORDS, one JSON document per line.")
@force_option
def report(
    plan: Path,
    words: Path | None,
    word: str | None,
    memory: Path | None,
    column: str | None,
    out: Path | None,
    force: bool,
) -> None:
    """Print one report of one device (--word and --memory), or write those of a file WORDS (--column and --out)."""
    from sfumato.collecting.rappor_device import RapporPlan, report_of_device, trial_reports
    from sfumato.data.atomic import replacing
    from sfumato.data.declared import read_declared

    loaded = RapporPlan.load(plan)
    if words is None:
        if word is None or memory is None:
            raise click.UsageError("Give --word and --memory, or a file WORDS with --column and --out.")
        emit_json(report_of_device(loaded, word, memory=memory))
        return
    if column is None or out is None or word is not None or memory is not None:
        raise click.UsageError("A file WORDS needs --column and --out, and neither --word nor --memory.")
    # A device without a word reports the empty one: to send nothing would tell.
    given = read_declared(words, {column: "category"}).frame[column].fill_null("").to_list()
    with replacing(out, force=force) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in trial_reports(loaded, given))
    note(f"{out}: {len(given):,} reports.")


@rappor.command("estimate")
@click.argument("plan", type=typed_path)
@click.argument("reports", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--candidate", "candidates", multiple=True, required=True, help="A word to look for; may be repeated.")
@json_option
def estimate(plan: Path, reports: Path, candidates: tuple[str, ...], as_json: bool) -> None:
    """Estimate how many REPORTS are about each candidate word; words without a significant count are left out."""
    from sfumato.collecting.rappor_device import RapporPlan, decode_lines

    loaded = RapporPlan.load(plan)
    with reports.open(encoding="utf-8", errors="replace") as lines:
        count, found = decode_lines(loaded, lines, list(candidates))
    if as_json:
        emit_json({"survey": loaded.survey, "reports": count, "words": [asdict(word) for word in found]})
        return
    click.echo(f"{count:,} reports, {len(found)} of {len(candidates)} candidates found.")
    for word in found:
        click.echo(f"{word.word}  {word.count:,.0f}  ({word.low:,.0f} to {word.high:,.0f})")
