"""Attack a release and report the risk of each attack."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sfumato.cli._console import NUMBER, emit_json, json_option, listed, note, progress, seed_option, typed_path


@click.command("attack")
@click.argument("release", type=typed_path)
@click.option("--original", default=None, help="The table the release was made from. Without it, see --auxiliary.")
@click.option("--auxiliary", default=None, help="A file about people that the attacker holds.")
@click.option(
    "--rename", multiple=True, help="Columns of that file with other names: theirs=ours, separated by commas."
)
@click.option("--control", default=None, help="People who are not in the release, with the original's columns.")
@click.option("--knows", multiple=True, help="Columns the attacker knows, separated by commas; may be repeated.")
@click.option("--secret", "secrets", multiple=True, help="Sensitive columns, separated by commas.")
@click.option("--recipe", type=typed_path, default=None, help="Roles, for a release without a manifest.")
@click.option(
    "--attack", "names", multiple=True, help="An attack to run; may be repeated. Default: attacks that fit the release."
)
@click.option(
    "--lineage", type=typed_path, default=None, help="The secret row map. Default: the one beside the release."
)
@click.option("--key", default=None, help="Column that identifies rows in both files, if there is no row map.")
@click.option("--row", "people", type=click.IntRange(min=1), multiple=True, help="Attack only this row; repeatable.")
@click.option("--aligned", is_flag=True, help="Release and original have the same row order.")
@click.option(
    "--limit", type=click.FloatRange(0, 1), default=None, help="Exit with 1 if the risk may exceed this share."
)
@click.option("--tries", type=click.IntRange(min=1), default=5000, show_default=True, help="Targets per attack.")
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
@click.option("--features", multiple=True, help="Model: its columns in order, separated by commas, if it has no names.")
@click.option("--html", type=typed_path, default=None, help="Without --original: write a report to this HTML file.")
@seed_option
@json_option
def command(
    release: Path,
    original: str | None,
    auxiliary: str | None,
    rename: tuple[str, ...],
    control: str | None,
    knows: tuple[str, ...],
    secrets: tuple[str, ...],
    recipe: Path | None,
    names: tuple[str, ...],
    lineage: Path | None,
    key: str | None,
    people: tuple[int, ...],
    aligned: bool,
    limit: float | None,
    tries: int,
    seconds: float | None,
    population: int | None,
    candidates: Path | None,
    epsilon: str | None,
    budget: str | None,
    label: str | None,
    features: tuple[str, ...],
    html: Path | None,
    seed: int | None,
    as_json: bool,
) -> int:
    """Attack RELEASE, a folder that `sfumato protect` wrote or any data file, and report the risk of each attack.

    RELEASE may also be the metadata file of a query service (`ward.yaml`, see `sfumato query`). Query attacks then send
    SQL to it under its policy and guess the sensitive columns; --attack, --knows, --secret, --limit, --tries, --seconds
    and --seed apply, and the ledger of the service is not touched.

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
    rows fit each person, certain matches, the expected number of right matches, and what the rows would tell. The files
    that --candidates and --html write are private and never replace existing ones.

    RELEASE may also be a released graph; --original is then the recipe that names the original tables.
    """
    if release.suffix.lower() == ".skops":
        unfit: dict[str, Any] = {"--auxiliary": auxiliary, "--recipe": recipe, "--lineage": lineage, "--key": key}
        unfit |= {"--row": people, "--aligned": aligned, "--rename": rename, "--population": population}
        unfit |= {"--candidates": candidates, "--html": html, "--epsilon": epsilon, "--budget": budget}
        unfit |= {"--knows": knows}
        needless = [name for name, value in unfit.items() if value not in (None, (), False)]
        if needless:
            raise click.UsageError(f"{needless[0]} is for releases, and {release} is a model.")
        if original is None or label is None:
            raise click.UsageError("A model needs --original, its training data, and --label, the column it predicts.")
        options: dict[str, Any] = {"attacks": names, "secrets": listed(secrets), "seed": seed}
        options |= {"features": listed(features) or None}
        options |= {"control": control, "label": label, "limit": limit, "n_targets": min(tries, 1000)}
        options |= {"seconds": seconds}
        return _attack_model(release, original, as_json=as_json, **options)
    if label is not None or features:
        raise click.UsageError("--label and --features are for models (a file that ends in .skops).")
    if release.suffix.lower() in (".yaml", ".yml"):
        outside: dict[str, Any] = {
            "--original": original,
            "--auxiliary": auxiliary,
            "--control": control,
            "--recipe": recipe,
        }
        outside |= {"--lineage": lineage, "--key": key, "--row": people, "--aligned": aligned}
        outside |= {"--rename": rename, "--population": population, "--candidates": candidates, "--html": html}
        needless = [name for name, value in outside.items() if value not in (None, (), False)]
        if needless:
            raise click.UsageError(f"{needless[0]} is for releases, and {release} is the metadata of a query service.")
        options = {"epsilon": epsilon, "budget": budget, "seed": seed, "seconds": seconds}
        options |= {"attacks": names, "knows": listed(knows) or None, "secrets": listed(secrets), "limit": limit}
        return _attack_queries(release, n_targets=min(tries, 40), as_json=as_json, **options)
    from sfumato.release.folder import is_graph_release

    if is_graph_release(release):
        from sfumato.cli._graph import attack_graph, refuse_options

        unused: dict[str, Any] = {"--auxiliary": auxiliary, "--rename": rename, "--control": control, "--knows": knows}
        unused |= {"--secret": secrets, "--recipe": recipe, "--lineage": lineage, "--key": key, "--row": people}
        unused |= {"--aligned": aligned, "--population": population, "--candidates": candidates, "--html": html}
        refuse_options(unused | {"--epsilon": epsilon, "--budget": budget})
        return attack_graph(
            release, original, attacks=names, seed=seed, n_targets=tries, seconds=seconds, limit=limit, as_json=as_json
        )
    if epsilon is not None or budget is not None:
        raise click.UsageError("--epsilon and --budget are for the metadata of a query service.")
    if original is None:
        given: dict[str, object] = {"--control": control, "--recipe": recipe, "--attack": names, "--lineage": lineage}
        given |= {"--key": key, "--row": people, "--aligned": aligned, "--limit": limit}
        return _link(
            release,
            auxiliary,
            needless=[name for name, value in given.items() if value not in (None, (), False)],
            rename=_pairs(listed(rename)),
            knows=listed(knows) or None,
            secrets=listed(secrets),
            population=population,
            seconds=seconds,
            candidates=candidates,
            html=html,
            as_json=as_json,
        )
    for name, value in (("--population", population), ("--candidates", candidates), ("--html", html)):
        if value is not None:
            raise click.UsageError(f"{name} is for linking without --original.")
    from sfumato.api import attack
    from sfumato.recipe import Recipe
    from sfumato.release.folder import load_lineage, load_release

    begun = time.monotonic()
    opened = load_release(release)
    if not opened.manifest and not (knows or secrets or recipe):
        note("The release has no manifest with roles: name columns with --knows and --secret, or a --recipe.")
    beside = load_lineage(release) if release.is_dir() else None
    results = attack(
        opened,
        original=original,
        attacks=names,
        auxiliary=auxiliary,
        control=control,
        rename=_pairs(listed(rename)),
        knows=listed(knows) or None,
        secrets=listed(secrets),
        schema=Recipe.load(recipe).schema if recipe is not None else None,
        lineage=lineage if lineage is not None else beside,
        key=key,
        people=[row - 1 for row in people] or None,
        aligned=aligned,
        seed=seed,
        n_targets=tries,
        seconds=None if seconds is None else max(0.0, seconds - (time.monotonic() - begun)),
        limit=limit,
        progress=progress(quiet=as_json),
    )
    document = results.to_dict()
    if as_json:
        emit_json(document)
    else:
        results.show()
    return 0 if results.met else 1


def _attack_model(model: Path, original: str, *, as_json: bool, **options: Any) -> int:
    """Attack a scikit-learn model."""
    from sfumato.api import attack_model

    results = attack_model(model, original, progress=progress(quiet=as_json), **options)
    document = results.to_dict()
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_attacks

        print_attacks(document["attacks"], document["limits"])
    return 0 if results.met else 1


def _attack_queries(metadata: Path, *, as_json: bool, **options: Any) -> int:
    """Attack a query service."""
    from sfumato.api import attack_queries

    results = attack_queries(metadata, progress=progress(quiet=as_json), **options)
    document = results.to_dict()
    if as_json:
        emit_json(document)
    else:
        from sfumato.reports.terminal import print_attacks

        print_attacks(document["attacks"], document["limits"])
    return 0 if results.met else 1


def _link(
    release: Path,
    auxiliary: str | None,
    *,
    needless: Sequence[str],
    candidates: Path | None,
    html: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Link an outside file without the original."""
    from sfumato.api import link
    from sfumato.errors import OutputExists

    if auxiliary is None:
        raise click.UsageError("Pass --original FILE, or --auxiliary FILE to link a file without the original.")
    if needless:
        raise click.UsageError(f"{needless[0]} needs --original.")
    for path in (candidates, html):
        if path is not None and path.exists():
            raise OutputExists(f"{path} exists.", fix="Choose another name: private output never replaces a file.")
    result = link(release, auxiliary, progress=progress(quiet=as_json), **options)
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


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    """Parse each `theirs=ours`."""
    names: dict[str, str] = {}
    for text in texts:
        theirs, sign, ours = (part.strip() for part in text.partition("="))
        if not (theirs and sign and ours):
            raise click.BadParameter(f"{text!r} is not of the form theirs=ours.", param_hint="--rename")
        names[theirs] = ours
    return names
