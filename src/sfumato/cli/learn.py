"""Learn a model with differential privacy: fit, charge, save, measure, attack and report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import emit_json, force_option, json_option, listed, note, progress, seed_option, typed_path
from sfumato.cli.integral import compare_files, compare_options

PERSON = "analyst"


_OWN = ("out", "names", "no_attacks", "seconds", "audit", "limit", "html_external", "seed")
"""Options of PLAN."""


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
@click.option("--attack", "names", multiple=True, help="An attack on the model; may be repeated. Default: all.")
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
    plan: Path | None,
    compare: tuple[Path, Path] | None,
    original: Path | None,
    k: int | None,
    out: Path | None,
    names: tuple[str, ...],
    no_attacks: bool,
    seconds: float,
    audit: int,
    limit: float | None,
    html: Path | None,
    html_external: Path | None,
    seed: int | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Fit the model that PLAN describes, charge its ledger, save it with its privacy statement, and attack it.

    PLAN is a YAML file with the estimator, the data, epsilon and delta, the unit of privacy and the public domain of
    every column; see docs/learning.md. The model file holds noisy values only and may be published. Figures on test
    data, attacks and the audit are printed for you: they are not covered by the guarantee and are not part of the model
    file. Attacks learn models of their own, which are discarded and cost no budget. They compare the people of `data`
    with those of `control` or `test`; without them, the algorithm is attacked on halves of the data.

    The exit code is 1 if the audit refutes epsilon or a limit is not met.

    With --compare OLD NEW there is no PLAN: two models of `sfumato integral fit` are compared, and the exit code says
    whether the new one may be published (0) or not (1).
    """
    if compare is not None:
        own = any(map(_given, _OWN))
        if plan is not None or own or original is None or k is None:
            raise click.UsageError("--compare OLD NEW needs --original and -k, and takes neither PLAN nor its options.")
        if private := _private_models(compare):
            return _compare_private(*private, original=original, k=k, as_json=as_json)
        return compare_files(*compare, original=original, k=k, html=html, force=force, as_json=as_json, **options)
    given = [name for name in options if _given(name)]
    if plan is None or given or original is not None or k is not None:
        raise click.UsageError("Name PLAN, a YAML file. The options of a comparison need --compare OLD NEW.")
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
        attacks=None if no_attacks else listed(names),
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


def _private_models(paths: tuple[Path, Path]) -> tuple[Any, ...]:
    """Both models if `sfumato learn` wrote them; nothing if they are models of `sfumato integral fit`."""
    from sfumato.errors import NotComparable
    from sfumato.learning.model_file import is_private_model, load_model

    private = [is_private_model(path) for path in paths]
    if any(private) and not all(private):
        raise NotComparable(
            "Only one of the two models is differentially private.", fix="Learn both with the same command."
        )
    return tuple(load_model(path) for path in paths) if all(private) else ()


def _compare_private(old: Any, new: Any, *, original: Path, k: int, as_json: bool) -> int:
    """Differintegral privacy of two models of `sfumato learn`; 0 if the new one may be published."""
    from sfumato.data import read
    from sfumato.integral.differintegral import differintegral

    frame, unit = read(original).frame, old.privacy_.unit
    people = frame.height if unit == "row" else frame.get_column(unit).n_unique()
    found = differintegral(old.privacy_, new.privacy_, people=people, k=k)
    if as_json:
        emit_json(found.to_dict())
    else:
        click.echo(found.standing.line("the new model"))
        click.echo(f"  {found.verdict.reason}")
    return 0 if found.verdict.holds else 1


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


def _given(name: str) -> bool:
    """Whether an option was written on the command line."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"
