"""Learn a model with differential privacy: fit, charge, save, measure, attack and report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, parts_of, progress, seed_option, typed_path

PERSON = "analyst"


@click.command("learn")
@click.argument("plan", type=typed_path)
@click.option("--out", type=typed_path, default=None, help="File for the model (JSON). Default: beside PLAN.")
@click.option(
    "--attack", "names", multiple=True, callback=parts_of, help="An attack on the model; may be repeated. Default: all."
)
@click.option("--no-attacks", is_flag=True, help="Do not attack the model.")
@click.option("--seconds", type=click.FloatRange(min=0), default=60, show_default=True, help="Time for the attacks.")
@click.option("--audit", type=click.IntRange(min=0), default=0, help="Audit epsilon with this many canaries.")
@click.option(
    "--limit", type=click.FloatRange(0, 1), default=None, help="Exit with 1 if an attack may learn more than this."
)
@click.option("--html", type=typed_path, default=None, help="Report for the owner, one HTML page.")
@click.option("--html-external", type=typed_path, default=None, help="Report without figures that are not private.")
@seed_option
@force_option
@json_option
def command(
    plan: Path,
    out: Path | None,
    names: list[str | dict[str, object]],
    no_attacks: bool,
    seconds: float,
    audit: int,
    limit: float | None,
    html: Path | None,
    html_external: Path | None,
    seed: int | None,
    force: bool,
    as_json: bool,
) -> int:
    """Fit the model that PLAN describes, charge its ledger, save it with its privacy statement, and attack it.

    PLAN is a YAML file with the estimator, the data, epsilon and delta, the unit of privacy and the public domain of
    every column; see docs/learning.md. The model file holds noisy values only and may be published. Figures on test
    data, attacks and the audit are printed for you: they are not covered by the guarantee and are not part of the model
    file. Attacks learn models of their own, which are discarded and cost no budget. They compare the people of `data`
    with those of `control` or `test`; without them, the algorithm is attacked on halves of the data.

    The exit code is 1 if the audit refutes epsilon or a limit is not met.
    """
    if no_attacks and (names or limit is not None):
        raise click.UsageError("--no-attacks excludes --attack and --limit.")
    from sfumato.api.learn import learn

    pages = [(path, path is html) for path in (html, html_external) if path is not None]
    _refuse_existing([path for path, _ in pages], force=force)  # before the charge
    place = plan.with_suffix(".model.json") if out is None else out
    done = learn(
        plan,
        out=place,
        force=force,
        attacks=None if no_attacks else names,
        audit=audit,
        limit=limit,
        seconds=seconds,
        seed=seed,
        progress=progress(quiet=as_json),
    )
    for path, internal in pages:
        done.report(path, internal=internal, force=force)
    document = done.to_dict()
    if as_json:
        emit_json({**document, "model": str(place)})
    else:
        _print(document, done.model.privacy_)
        note(f"{place}: the model, which may be published. `sfumato predict {place} FILE` uses it.")
        for path, internal in pages:
            note(f"{path}: the report{'; confidential' if internal else ', which may be published'}.")
    return 0 if done.met else 1


def _print(document: dict[str, Any], statement: Any) -> None:
    from sfumato.reports.terminal import print_attacks

    click.echo(f"{document['estimator']}: {statement}")
    click.echo(f"Public inputs, which must not come from the data: {', '.join(statement.parameters['public'])}.")
    for name, value in document["measures"].items():
        click.echo(f"  {name.replace('_', ' '):<28}{value:.4f}")
    if document["attacks"]:
        print_attacks(document["attacks"], document["limits"])
        click.echo(f"No membership attack can be right about more than {statement.membership_bound:.1%} of people.")
    if audit := document["audit"]:
        verdict = "REFUTED" if audit["refuted"] else "not refuted"
        click.echo(f"Audit: epsilon is at least {audit['epsilon']:.3f}; the promise is {verdict}.")
    if document["measures"] or document["attacks"] or audit:
        note("These figures are not covered by the guarantee.")


def _refuse_existing(paths: list[Path], *, force: bool) -> None:
    from sfumato.errors import OutputExists

    for path in paths:
        if path.exists() and not force:
            raise OutputExists(f"{path} exists.", fix="Choose another name, or pass --force.")
