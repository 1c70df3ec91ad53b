"""Learn models and decide whether a model may be published after a deletion (integral privacy)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli._console import (
    CommandGroup,
    emit_json,
    force_option,
    json_option,
    listed,
    note,
    progress,
    seed_option,
    typed_path,
)

if TYPE_CHECKING:
    import polars as pl

    from sfumato.integral.encoding import Encoding
    from sfumato.integral.learner import Learner

PERSON = "researcher"


k_option = click.option("-k", "--k", type=click.IntRange(min=2), required=True, help="Explanations required, at least.")
known_option = click.option("--known", multiple=True, help="Rows (from 1) that the attacker knows to have stayed.")


@click.group("integral", cls=CommandGroup)
def command() -> None:
    """Integral privacy: what an old and a new model tell about the change of the data between them."""


@command.command("fit")
@click.argument("data", type=typed_path)
@click.option("--learner", default=None, help="Algorithm with its main parameter, e.g. decision-tree=3.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Another parameter of the algorithm.")
@click.option("--label", default=None, help="Column to predict.")
@click.option("--threshold", type=float, default=None, help="Split a numeric label here.")
@click.option("--features", multiple=True, help="Columns to learn from, separated by commas. Default: all others.")
@click.option("--bins", type=click.IntRange(min=2, max=256), default=4, show_default=True, help="Bins of a column.")
@click.option("--bounds", multiple=True, metavar="COLUMN=LOW..HIGH", help="Public bounds, for regression and k-means.")
@click.option("--without", multiple=True, help="Rows (from 1) that are left out: people who asked to be erased.")
@click.option("--like", type=typed_path, default=None, help="Take algorithm and encoding from this model file.")
@click.option("--out", type=typed_path, required=True, help="Model file (JSON).")
@force_option
def fit(
    data: Path,
    learner: str | None,
    settings: tuple[str, ...],
    label: str | None,
    threshold: float | None,
    features: tuple[str, ...],
    bins: int,
    bounds: tuple[str, ...],
    without: tuple[str, ...],
    like: Path | None,
    out: Path,
    force: bool,
) -> None:
    """Learn a model from DATA and write it as JSON, with its algorithm and encoding."""
    from sfumato.data import read
    from sfumato.errors import BadParameter
    from sfumato.integral.encoding import Encoding
    from sfumato.integral.model_file import ModelFile
    from sfumato.integral.records import Records

    frame = read(data).frame
    if like is not None:
        example = ModelFile.load(like)
        chosen, encoding = example.learner, example.encoding
    else:
        if learner is None:
            raise click.UsageError("Name the algorithm with --learner, or a model file with --like.")
        chosen = _learner(learner, settings)
        if chosen.uses_grid:
            encoding = _grid(frame, _bounds(bounds), label, threshold)
        else:
            names = listed(features) or [name for name in frame.columns if name != label]
            encoding = Encoding.from_table(frame, features=names, label=label, threshold=threshold, bins=bins)
    records = Records.of(frame, encoding)
    counts = records.without(_rows(without))
    if not counts.any():
        raise BadParameter("No record is left to learn from.", fix="Leave out fewer rows with --without.")
    model = chosen.fit(records, counts)
    ModelFile(learner=chosen, encoding=encoding, model=model).save(out, force=force)
    note(f"{out}: {chosen.part_name()}, score {chosen.score(model, records):.4g}, {len(records.cells):,} cells.")


@command.command("compare")
@click.argument("old", type=typed_path)
@click.argument("new", type=typed_path)
@click.option("--original", type=typed_path, required=True, help="The table that OLD was learned from.")
@k_option
@click.option("--size", type=click.IntRange(min=1), default=1, show_default=True, help="Changed records, at most.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(["deletion", "insertion", "amendment", "group"]),
    default=("deletion",),
    show_default=True,
    help="Changes that the attacker considers; may be repeated. `group` stands alone.",
)
@known_option
@click.option("--secret", "secrets", multiple=True, help="Sensitive columns, separated by commas.")
@click.option("--universe", type=typed_path, default=None, help="Further records that may have been inserted.")
@click.option("--erased", multiple=True, help="Rows (from 1) that were deleted: look for changes that would help.")
@click.option("--refits", type=click.IntRange(min=1), default=1_000_000, show_default=True, help="Refits, at most.")
@click.option("--html", type=typed_path, default=None, help="Report for the owner, one HTML page.")
@force_option
@json_option
def compare(
    old: Path,
    new: Path,
    *,
    original: Path,
    k: int,
    size: int,
    kinds: tuple[str, ...],
    known: tuple[str, ...],
    secrets: tuple[str, ...],
    universe: Path | None,
    erased: tuple[str, ...],
    refits: int,
    html: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Decide whether NEW may be published after OLD. Exit code 0: yes; 1: no.

    The attacker knows both models, the algorithm and the records, and asks which change of the data explains the pair.
    The answer is yes if at least k minimal changes do and nobody is in all of them. Two models of `sfumato learn` are
    judged by their privacy statements.
    """
    if private := _private_models((old, new)):
        return _compare_private(*private, original=original, k=k, as_json=as_json)
    from sfumato.data import read
    from sfumato.errors import NotComparable
    from sfumato.integral.model_file import ModelFile
    from sfumato.integral.publication import decide_publication, suggest_changes
    from sfumato.integral.records import Records

    before, after = ModelFile.load(old), ModelFile.load(new)
    if (before.learner, before.encoding) != (after.learner, after.encoding):
        raise NotComparable(
            "The two models differ in algorithm, parameters or encoding.", fix="Learn the new one with --like OLD."
        )
    if "group" in kinds and len(set(kinds)) > 1:
        raise click.UsageError("`group` cannot be combined with other kinds.")
    frame = read(original).frame
    records = Records.of(frame, before.encoding, universe=None if universe is None else read(universe).frame)
    options: dict[str, Any] = {"k": k, "size": size, "known": _rows(known), "secrets": listed(secrets)}
    decision = decide_publication(
        before.learner,
        records,
        before.model,
        after.model,
        kinds=kinds,
        max_refits=refits,
        progress=progress(quiet=as_json),
        **options,
    )
    document = decision.to_dict()
    rows = _rows(erased)
    if rows and not decision.publish:
        tried = suggest_changes(before.learner, frame, before.encoding, rows, **options)
        document["suggestions"] = [one.to_dict() for one in tried]
    if html is not None:
        from sfumato.data.atomic import replacing
        from sfumato.reports.model_page import comparison_html

        with replacing(html, force=force) as temporary:
            temporary.write_text(comparison_html(document), encoding="utf-8", newline="\n")
    if as_json:
        emit_json(document)
    else:
        _print(document, before.learner.score(after.model, records))
    return 0 if decision.publish else 1


def _private_models(paths: tuple[Path, Path]) -> tuple[object, ...]:
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


@command.command("recurrent")
@click.argument("data", type=typed_path)
@click.option("--like", type=typed_path, required=True, help="Model file with algorithm and encoding.")
@k_option
@click.option("--samples", type=click.IntRange(min=1), default=2000, show_default=True, help="Subsamples to draw.")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.5, show_default=True)
@click.option("--out", type=typed_path, default=None, help="Write the best integrally private model here.")
@known_option
@force_option
@seed_option
@json_option
def recurrent(
    data: Path,
    like: Path,
    k: int,
    samples: int,
    share: float,
    out: Path | None,
    known: tuple[str, ...],
    force: bool,
    seed: int | None,
    as_json: bool,
) -> int:
    """Find the most accurate model with at least k generators whose intersection is empty. Exit code 1: none found."""
    from sfumato.data import read
    from sfumato.integral.generators import sampled_generators
    from sfumato.integral.model_file import ModelFile
    from sfumato.integral.records import Records
    from sfumato.rng import Rng

    example = ModelFile.load(like)
    records = Records.of(read(data).frame, example.encoding)
    found = sampled_generators(
        example.learner,
        records,
        k=k,
        samples=samples,
        share=share,
        known=_rows(known),
        rng=Rng(seed),
        progress=progress(quiet=as_json),
    )
    best, own = found.best(), found.verdict(example.model)
    document = {
        "data_sets": found.data_sets,
        "models": len(found.models),
        "private_models": len(found.private),
        "given_model": {**own.to_dict(), "score": example.learner.score(example.model, records)},
        "best": None if best is None else {"score": best.score, "generators": best.generators},
    }
    if best is not None and out is not None:
        ModelFile(learner=example.learner, encoding=example.encoding, model=best.model).save(out, force=force)
    if as_json:
        emit_json(document)
    else:
        click.echo(
            f"{len(found.models):,} models from {samples:,} data sets; {len(found.private):,} are private (k={k})."
        )
        click.echo(f"Given model: score {document['given_model']['score']:.4g}, {own.state}: {own.reason}")  # type: ignore[index]
        if best is not None:
            click.echo(f"Best private model: score {best.score:.4g}, {best.generators:,} generators, nobody in all.")
    return 0 if best is not None else 1


def _print(document: dict[str, Any], score: float) -> None:
    from sfumato.release.standing import Standing

    click.echo(Standing(document["standing"]).line("the new model"))
    click.echo(f"  {document['reason']}")
    click.echo(f"  verdict            {document['verdict']['model']} {document['verdict']['state']}")
    click.echo(f"  models             {'the same' if document['unchanged'] else 'different'}; new score {score:.4g}")
    click.echo(f"  attacker considers {document['considered']} ({document['refits']:,} refits)")
    click.echo(f"  minimal changes    {document['minimal_modifications']:,}, about {document['people']:,} people")
    click.echo(f"  in all of them     {document['people_in_all']:,} people")
    shared = ", ".join(document["shared_columns"]) or "none"
    click.echo(f"  same value in all  {shared}")
    for one in document.get("suggestions", ()):
        click.echo(f"- {one['change']} New score {one['score']:.4g}. {one['detail']}")


def _learner(text: str, settings: tuple[str, ...]) -> Learner:
    from sfumato.integral.learner import Learner
    from sfumato.registry import registry

    name, _, value = text.partition("=")
    kind = registry("learner").get(name)
    parameters: dict[str, object] = {kind.main: value} if value and kind.main is not None else {}
    for setting in settings:
        key, sign, given = setting.partition("=")
        if not sign:
            raise click.BadParameter("must be NAME=VALUE.", param_hint="--set")
        parameters[key] = given
    learner = kind.build(parameters)
    assert isinstance(learner, Learner)
    return learner


def _bounds(texts: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for text in texts:
        name, _, limits = text.rpartition("=")
        low, _, high = limits.partition("..")
        try:
            found[name] = (float(low), float(high))
        except ValueError:
            raise click.BadParameter("must be COLUMN=LOW..HIGH.", param_hint="--bounds") from None
    return found


def _grid(
    frame: pl.DataFrame, bounds: dict[str, tuple[float, float]], label: str | None, threshold: float | None
) -> Encoding:
    from sfumato.integral.encoding import Encoding

    if not bounds:
        raise click.UsageError("This algorithm needs public --bounds for each column.")
    if label is None or (threshold is None and label in bounds):
        return Encoding.from_bounds(bounds, label=label)
    classes = Encoding.from_table(frame, features=[], label=label, threshold=threshold).label
    return Encoding.from_bounds({name: limits for name, limits in bounds.items() if name != label}, label=classes)


def _rows(texts: tuple[str, ...]) -> list[int]:
    try:
        rows = [int(text) - 1 for text in listed(texts)]
    except ValueError:
        raise click.BadParameter("rows are whole numbers from 1.") from None
    if any(row < 0 for row in rows):
        raise click.BadParameter("rows are whole numbers from 1.")
    return rows
