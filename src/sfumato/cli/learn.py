"""Learn a model with differential privacy: fit, charge, measure and save it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path
from sfumato.cli.integral import compare_files, compare_options


@click.command("learn")
@click.argument("plan", type=typed_path, required=False)
@click.option(
    "--compare",
    type=typed_path,
    nargs=2,
    default=None,
    metavar="OLD NEW",
    help="Decide whether the model NEW may be published after OLD (see `sfumato integral compare`).",
)
@click.option("--original", type=typed_path, default=None, help="With --compare: the table OLD was learned from.")
@click.option("-k", "--k", type=click.IntRange(min=2), default=None, help="With --compare: explanations required.")
@compare_options
@click.option("--out", type=typed_path, default=None, help="File for the model (JSON). Default: beside PLAN.")
@force_option
@json_option
def command(
    plan: Path | None,
    compare: tuple[Path, Path] | None,
    original: Path | None,
    k: int | None,
    out: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Fit the model that PLAN describes, charge its ledger, and save it with its privacy statement.

    PLAN is a YAML file with the estimator, the data, epsilon and delta, the unit of privacy and the public domain of
    every column; see docs/learning.md. The model file holds noisy values only and may be published. Figures on test
    data are printed for you: they are not covered by the guarantee and are not part of the model file.

    With --compare OLD NEW there is no PLAN: two models of `sfumato integral fit` are compared, and the exit code says
    whether the new one may be published (0) or not (1).
    """
    if compare is not None:
        if plan is not None or out is not None or original is None or k is None:
            raise click.UsageError("--compare OLD NEW needs --original and -k, and takes neither PLAN nor --out.")
        return compare_files(*compare, original=original, k=k, as_json=as_json, **options)
    given = [name for name in options if _given(name)]
    if plan is None or given or original is not None or k is not None:
        raise click.UsageError("Name PLAN, a YAML file. The options of a comparison need --compare OLD NEW.")
    from sfumato.data.atomic import replacing
    from sfumato.learning.model_file import model_text
    from sfumato.learning.plan import LearningPlan
    from sfumato.learning.run import run_plan

    loaded = LearningPlan.load(plan)
    place = plan.with_suffix(".model.json") if out is None else out
    with replacing(place, force=force) as temporary:  # a place that cannot be written is refused before the charge
        done = run_plan(loaded, base=plan.parent)
        temporary.write_text(model_text(done.model), encoding="utf-8")
    if as_json:
        emit_json({**done.to_dict(), "model": str(place)})
        return 0
    click.echo(f"{loaded.learn}: {done.model.privacy_}")
    click.echo(f"Public inputs, which must not come from the data: {', '.join(done.model.privacy_.public)}.")
    for name, value in done.measures.items():
        click.echo(f"  {name.replace('_', ' '):<28}{value:.4f}")
    if done.measures:
        note("The figures describe the test data. They are not covered by the guarantee.")
    note(f"{place}: the model, which may be published. `sfumato predict {place} FILE` uses it.")
    return 0


def _given(name: str) -> bool:
    """Whether an option was written on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
