"""Learn a model with differential privacy: fit, charge, measure and save it."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path


@click.command("learn")
@click.argument("plan", type=typed_path)
@click.option("--out", type=typed_path, default=None, help="File for the model (JSON). Default: beside PLAN.")
@force_option
@json_option
def command(plan: Path, out: Path | None, force: bool, as_json: bool) -> None:
    """Fit the model that PLAN describes, charge its ledger, and save it with its privacy statement.

    PLAN is a YAML file with the estimator, the data, epsilon and delta, the unit of privacy and the public domain of
    every column; see docs/learning.md. The model file holds noisy values only and may be published. Figures on test
    data are printed for you: they are not covered by the guarantee and are not part of the model file.
    """
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
        return
    click.echo(f"{loaded.learn}: {done.model.privacy_}")
    click.echo(f"Public inputs, which must not come from the data: {', '.join(done.model.privacy_.public)}.")
    for name, value in done.measures.items():
        click.echo(f"  {name.replace('_', ' '):<28}{value:.4f}")
    if done.measures:
        note("The figures describe the test data. They are not covered by the guarantee.")
    note(f"{place}: the model, which may be published. `sfumato predict {place} FILE` uses it.")
