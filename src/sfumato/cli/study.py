"""Compare many candidate releases by risk and utility."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, json_option, note, progress, typed_path

if TYPE_CHECKING:
    from sfumato.studies import Point, Study

PERSON = "researcher"


@click.command("study")
@click.argument("plan", type=typed_path)
@click.option("--data", default=None, help="A file or database URL other than the one in the study.")
@click.option(
    "--out", type=typed_path, default=Path("study"), show_default=True,
    help="Folder for page, table and recipes. It keeps finished runs, so that the same command continues.",
)  # fmt: skip
@click.option("--workers", type=click.IntRange(1), default=None, help="Number of processes. Default: all cores.")
@click.option(
    "--risk",
    type=click.FloatRange(0, 1),
    default=None,
    help="Recommend the least loss up to this risk.",
)
@click.option("--loss", type=float, default=None, help="Recommend the least risk up to this loss.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=None,
    help="Time limit of each run (a candidate under one seed). Cheap attacks run first.",
)  # fmt: skip
@click.option(
    "--total", type=click.FloatRange(0, min_open=True), default=None,
    help="Time limit of the whole study in seconds.",
)  # fmt: skip
@json_option
def command(
    plan: Path,
    data: str | None,
    out: Path,
    workers: int | None,
    risk: float | None,
    loss: float | None,
    seconds: float | None,
    total: float | None,
    as_json: bool,
) -> int:
    """Run PLAN, a recipe with a `study:` key, on all cores and write the results to a folder.

    Every candidate is masked, attacked and measured under every seed. Exit code 1 if a limit is set (`limits: {risk:
    ...}`, --risk or --loss) and no candidate meets it.
    """
    from dataclasses import replace

    from sfumato.api.study import study as run
    from sfumato.studies import StudyPlan

    parsed = StudyPlan.load(plan)
    if risk is not None:
        limits = parsed.recipe.limits.model_copy(update={"risk": risk})
        parsed = replace(parsed, recipe=replace(parsed.recipe, limits=limits))
    limit = parsed.recipe.limits.risk
    study = run(
        parsed, data, out=out, workers=workers, seconds=seconds, total=total,
        progress=progress(quiet=as_json, lines=True),
    )  # fmt: skip
    limited = limit is not None or loss is not None
    best = study.recommend(risk=limit, loss=loss)
    document = {
        **study.to_dict(),
        "limit": limit,
        "loss_limit": loss,
        "recommended": best.candidate.name if best is not None else None,
        "folder": f"{out}/",
    }
    if as_json:
        emit_json(document)
        return 1 if limited and best is None else 0
    _show(study, best)
    note(f"Page, table and recipes: {out}/study.html")
    if limited and best is None:
        stopped = sum(bool(point.stopped) for point in study.points)
        note("No candidate meets the limit." if not stopped else "No candidate is known to meet the limit.")
        if stopped:
            note(f"{stopped} of {len(study.points)} ran out of time: run the same command with more, and it continues.")
        return 1
    return 0


def _show(study: Study, best: Point | None) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from sfumato.evaluation.formatting import percent

    limit = study.plan.recipe.limits.risk
    losses = [f"loss ({utility})" for utility in study.plan.utilities]
    table = Table(title="Risk and utility", title_justify="left", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for head in ("candidate", "risk", "at most", *losses, ""):
        table.add_column(head, justify="right" if head in ("risk", "at most", *losses) else "left")
    for point in sorted(study.points, key=lambda p: (p.risk is None, p.risk or 0.0, p.loss or 0.0)):
        marks = ["recommended"] if point is best else ["efficient"] if point.efficient else []
        risks = ["" if value is None else percent(value, limit=limit) for value in (point.risk, point.risk_high)]
        spans = (point.losses.get(utility) for utility in study.plan.utilities)
        means = ["" if span is None else f"{span[0]:.3g}" for span in spans]
        remark = "; ".join([*marks, *([point.remark] if point.remark else [])])
        table.add_row(Text(point.candidate.name), *risks, *means, Text(remark))
    Console().print(table)
