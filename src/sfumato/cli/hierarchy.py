"""Write, check and show the hierarchies of a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, force_option, json_option, note, typed_path

if TYPE_CHECKING:
    from sfumato.schema import Dataset

_DATA = click.option("--data", default=None, help="File or database URL to use instead of the recipe's own data.")
_VALUES = click.option("--show-values", is_flag=True, help="Print values of the data. For the owner's eyes only.")


@click.group("hierarchy")
def command() -> None:
    """Hierarchies say how values become coarser: write one to a file, check them against the data, look at one."""


@command.command("write")
@click.argument("recipe", type=typed_path)
@click.argument("column")
@click.option("--out", type=typed_path, default=None, help="The file; COLUMN.hierarchy.csv when left out.")
@_DATA
@force_option
@json_option
def write(recipe: Path, column: str, out: Path | None, data: str | None, force: bool, as_json: bool) -> None:
    """Write the hierarchy of COLUMN as a file, to be edited and used again with {file: ...}.

    The file lists every value of the column (one line each): keep it as safe as the data. A release publishes the lines
    of the files it was made with, so first add the values that could occur too, or take a rule instead of the file.
    """
    from sfumato.data import replacing

    place = out if out is not None else Path(f"{column}.hierarchy.csv")
    hierarchy = _dataset(recipe, data, [column]).bound_hierarchy(column)
    with replacing(place, force=force) as temporary:
        hierarchy.to_csv(temporary)
    if as_json:
        emit_json(
            {"hierarchy": str(place), "column": column, "values": len(hierarchy.leaves), "height": hierarchy.height}
        )
    else:
        note(
            f"Written: {place} ({len(hierarchy.leaves)} values, {hierarchy.height} levels). "
            f"Use it: {{file: {place.name}}}"
        )
        note(
            "It lists the values that occur, and a release publishes its lines: add all values that could occur before "
            "you use it."
        )


@command.command("check")
@click.argument("recipe", type=typed_path)
@_DATA
@_VALUES
@json_option
def check(recipe: Path, data: str | None, show_values: bool, as_json: bool) -> int:
    """Check that every value of every column with a hierarchy has its place in it. Exit code 1 if one has not."""
    from sfumato.errors import SfumatoError

    dataset = _dataset(recipe, data, None)
    found: list[dict[str, object]] = []
    for name, column in dataset.schema.columns.items():
        if column.hierarchy is None:
            continue
        line: dict[str, object] = {"column": name, "state": "complete", "missing": 0}
        try:
            gaps = dataset.bound_hierarchy(name).gaps(dataset.table.column(name))
            if len(gaps):
                line |= {"state": "incomplete", "missing": len(gaps)}
            if show_values and len(gaps):
                line["values"] = [str(value) for value in gaps.sort()]
        except SfumatoError as refusal:
            line |= {"state": "refused", "missing": None, "reason": str(refusal)}
        found.append(line)
    if as_json:
        emit_json({"hierarchies": found})
    else:
        for line in found:
            click.echo(_sentence(line))
        if not found:
            note("No column of the recipe has a hierarchy.")
    return 1 if any(line["state"] != "complete" for line in found) else 0


@command.command("show")
@click.argument("recipe", type=typed_path)
@click.argument("column")
@_DATA
@_VALUES
@json_option
def show(recipe: Path, column: str, data: str | None, show_values: bool, as_json: bool) -> None:
    """Show the levels of COLUMN's hierarchy: how many groups each has and how large they are."""
    hierarchy = _dataset(recipe, data, [column]).bound_hierarchy(column)
    levels = [
        {"level": number, "groups": level.size, "largest": int(level.leaves_under.max(initial=0))}
        for number, level in enumerate(hierarchy.levels)
    ]
    if as_json:
        document: dict[str, object] = {"column": column, "levels": levels}
        emit_json(document | {"rows": hierarchy.rows()} if show_values else document)
        return
    for line in levels:
        click.echo(f"level {line['level']}: groups {line['groups']}, values in the largest {line['largest']}")
    if show_values:
        for row in hierarchy.rows():
            click.echo(" > ".join(row))


def _dataset(recipe: Path, data: str | None, columns: list[str] | None) -> Dataset:
    """The data of the recipe with its schema; only these columns need to be there."""
    from sfumato.data import read
    from sfumato.errors import FileMissing, UnknownColumn, did_you_mean
    from sfumato.recipe import Recipe
    from sfumato.schema import Dataset, Schema

    made = Recipe.load(recipe)
    wanted = dict(made.schema.columns)
    if columns is not None:
        for name in columns:
            if name not in wanted:
                raise UnknownColumn(
                    f"The recipe has no column `{name}`.", fix=did_you_mean(name, wanted), columns=(name,)
                )
        wanted = {name: wanted[name] for name in columns}
    source = data or (made.source.location if made.source else None)
    if source is None:
        raise FileMissing("The recipe names no data.", fix="Add `data:` to it, or use --data.")
    options = dict(made.source.options) if made.source and data is None else {}
    return Dataset.of(read(source, **options), Schema(columns=wanted))


def _sentence(line: dict[str, object]) -> str:
    match line["state"]:
        case "complete":
            return f"{line['column']}: complete"
        case "incomplete":
            values = line.get("values")
            shown = f": {', '.join(values)}" if isinstance(values, list) else "; --show-values lists them"
            have = "value has" if line["missing"] == 1 else "values have"
            return f"{line['column']}: {line['missing']} {have} no line{shown}"
        case _:
            return f"{line['column']}: {line['reason']}"
