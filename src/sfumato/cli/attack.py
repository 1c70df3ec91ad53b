"""Attack a release and report the risk of each attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import (
    NUMBER,
    chosen,
    emit_json,
    json_option,
    listed,
    names_of,
    note,
    option_names,
    parts_of,
    place_options,
    progress,
    seed_option,
    show,
    typed_path,
)

PERSON = "researcher"


def _pairs(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """Parse each `theirs=ours`."""
    names: dict[str, str] = {}
    for text in listed(value):
        theirs, sign, ours = (part.strip() for part in text.partition("="))
        if not (theirs and sign and ours):
            raise click.BadParameter(f"{text!r} is not of the form theirs=ours.", param_hint="--rename")
        names[theirs] = ours
    return names


@click.command("attack")
@click.argument("release", type=typed_path)
@click.option("--original", default=None, help="The table the release was made from. Without it, see --auxiliary.")
@click.option("--auxiliary", default=None, help="A file about people that the attacker holds.")
@click.option(
    "--rename",
    multiple=True,
    callback=_pairs,
    help="Columns of that file with other names: theirs=ours, separated by commas.",
)
@click.option("--control", default=None, help="People who are not in the release, with the original's columns.")
@click.option(
    "--knows",
    multiple=True,
    callback=names_of,
    help="Columns the attacker knows, separated by commas; may be repeated.",
)
@click.option("--secret", "secrets", multiple=True, callback=names_of, help="Sensitive columns, separated by commas.")
@click.option(
    "--recipe", "schema", type=typed_path, default=None, help="Roles and attacks, for a release without a manifest."
)
@click.option(
    "--attack",
    "attacks",
    multiple=True,
    callback=parts_of,
    help="An attack, such as linkage or any-columns=2; may be repeated. Default: those of --recipe, or all that fit.",
)
@click.option(
    "--lineage",
    type=typed_path,
    default=None,
    help="The row map, which is secret. Default: the one beside the release.",
)
@click.option("--key", default=None, help="Column that identifies rows in both files, if there is no row map.")
@click.option("--row", "people", type=click.IntRange(min=1), multiple=True, help="Attack only this row; repeatable.")
@click.option("--aligned", is_flag=True, help="Release and original have the same row order.")
@click.option(
    "--limit", type=click.FloatRange(0, 1), default=None, help="Exit with 1 if the risk may exceed this share."
)
@click.option(
    "--targets", "n_targets", type=click.IntRange(min=1), default=None,
    help="Targets per attack.  [default: 5000; models 1000; answers to queries 40]",
)  # fmt: skip
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=None, help="Stop after this time and report what was found."
)
@click.option(
    "--population",
    type=click.IntRange(min=1),
    default=None,
    help="Without --original: number of people sampled.",
)
@click.option(
    "--candidates", type=typed_path, default=None, help="Without --original: write the candidates to this CSV file."
)
@click.option("--epsilon", type=NUMBER, default=None, help="Query service with differential privacy: cost of a query.")
@click.option("--budget", type=NUMBER, default=None, help="Query service with differential privacy: budget in all.")
@click.option("--label", default=None, help="Model: the column that it predicts.")
@click.option("--features", multiple=True, callback=names_of, help="Model: its columns in order, separated by commas.")
@click.option("--html", type=typed_path, default=None, help="Without --original: write a report to this HTML file.")
@seed_option
@place_options
@json_option
def command(
    release: Path,
    schema: Path | None,
    people: tuple[int, ...],
    candidates: Path | None,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Attack RELEASE, a folder that `sfumato protect` wrote or any data file, and report the risk of each attack.

    RELEASE may also be the document of a data set that is queried (`ward.yaml`, see `sfumato query`). Query attacks
    then send SQL to it under its policy and guess the sensitive columns; the ledger of the service is not touched.

    RELEASE may also be a scikit-learn model (`model.skops`, written by skops). Attacks on models then ask who is in its
    training data (--original) and what the model tells about them; --label is required, --control names people who are
    not in the training data.

    A data file has no roles: name the columns the attacker knows with --knows and the sensitive ones with --secret, or
    pass a recipe (`sfumato init ORIGINAL` writes one). Identity risk needs the row correspondence: a row map, --key or
    --aligned. Attribute risk can be computed without.

    The risk of an attack is the share of targets it is right about, with a 95 % interval, next to the success rate
    without the release (baseline) and on people who are not in it (control). An attack that does not apply has a reason
    and no risk, never a risk of 0. With --seconds, attacks stop in time: targets are attacked in random order, so those
    reached are a random sample. A limit is not met if an attack of its kind has no result.

    Without --original nobody can tell which guesses are right. --auxiliary FILE is then linked to RELEASE: how many
    rows fit each person, the expected number of right matches, and what the rows would tell. The files that
    --candidates and --html write are private and never replace existing ones.

    RELEASE may also be a released graph; --original is then the recipe that names the original tables. Of released
    tables, the interval of every suppressed cell is calculated; a plan that lists `published` files does so for tables
    of others. An option that does not apply to the kind of RELEASE is refused.
    """
    from sfumato.api.attack import attack
    from sfumato.api.kind import kind_of_release

    unjudged = kind_of_release(release).links and options["original"] is None
    if schema is not None:
        from sfumato.recipe import Recipe

        recipe = Recipe.load(schema)
        # Without the original no attack of the recipe can be judged: the recipe then states the roles alone.
        options |= {"schema": recipe.schema, "attacks": options["attacks"] or ([] if unjudged else recipe.attacks)}
    given = chosen(options | {"people": [row - 1 for row in people]})
    with option_names():
        if unjudged:
            return _link(release, candidates, html, as_json=as_json, **given)
        outputs = {"--population": given.get("population"), "--candidates": candidates, "--html": html}
        for name, value in outputs.items():
            if value is not None:
                raise click.UsageError(f"{name} is for linking without --original.")
        if kind_of_release(release).links and release.is_file() and not given.keys() & {"knows", "secrets", "schema"}:
            note("A file has no roles: name columns with --knows and --secret, or a --recipe.")
        results = attack(release, progress=progress(quiet=as_json), **given)
    return show(results, as_json=as_json)


def _link(release: Path, candidates: Path | None, html: Path | None, *, as_json: bool, **options: object) -> int:
    """Link an outside file without the original."""
    from sfumato.api.kind import call
    from sfumato.api.link import link
    from sfumato.errors import OutputExists

    if "auxiliary" not in options:
        raise click.UsageError("Pass --original FILE, or --auxiliary FILE to link a file without the original.")
    for path in (candidates, html):
        if path is not None and path.exists():
            raise OutputExists(f"{path} exists.", fix="Choose another name: private output never replaces a file.")
    quiet = progress(quiet=as_json)
    outside = options.pop("auxiliary")
    result = call(link, release, outside, what="linking without --original", options={**options, "progress": quiet})
    if candidates is not None:
        result.save_candidates(candidates)
    if html is not None:
        result.save_report(html)
    if as_json:
        emit_json(result.to_dict())
    else:
        from sfumato.reports.outside import print_outside

        print_outside(result.to_dict())
    return 0
