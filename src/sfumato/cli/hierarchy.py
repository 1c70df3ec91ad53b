"""Write, check and show the generalization hierarchies of a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import CommandGroup, emit_json, force_option, json_option, note, typed_path
from sfumato.wording import counted

if TYPE_CHECKING:
    from sfumato.dataset import Data

PERSON = "steward"


_DATA = click.option("--data", default=None, help="File or database URL to use instead of the recipe's own data.")
_VALUES = click.option("--show-values", is_flag=True, help="Print values of the data. For the owner only.")


@click.group("hierarchy", cls=CommandGroup)
def command() -> None:
    """Generalization hierarchies of a recipe: write one to a file, check them against the data, show one."""


@command.command("write")
@click.argument("recipe", type=typed_path)
@click.argument("column")
@click.option("--out", type=typed_path, default=None, help="File to write; COLUMN.hierarchy.csv if left out.")
@_DATA
@force_option
@json_option
def write(recipe: Path, column: str, out: Path | None, data: str | None, force: bool, as_json: bool) -> None:
    """Write the hierarchy of COLUMN to a CSV file, to be edited and used with {file: ...}.

    The file lists every value of the column, one per line: protect it like the data. A release publishes the lines of
    its hierarchy files. Add all values that could occur before you use the file, or use a rule instead.
    """
    from sfumato.data import replacing

    path = out if out is not None else Path(f"{column}.hierarchy.csv")
    hierarchy = _dataset(recipe, data, [column]).bound_hierarchy(column)
    with replacing(path, force=force) as temporary:
        hierarchy.to_csv(temporary)
    if as_json:
        emit_json(
            {"hierarchy": str(path), "column": column, "values": len(hierarchy.leaves), "height": hierarchy.height}
        )
    else:
        note(
            f"Written: {path} ({counted(len(hierarchy.leaves), 'value')}, {counted(hierarchy.height, 'level')}). "
            f"Use it: {{file: {path.name}}}"
        )
        note(
            "The file lists the values that occur, and a release publishes its lines. Add all values that could occur "
            "before you use it."
        )


@command.command("check")
@click.argument("recipe", type=typed_path)
@_DATA
@_VALUES
@json_option
def check(recipe: Path, data: str | None, show_values: bool, as_json: bool) -> int:
    """Check that the hierarchies contain all values of their columns. The exit code is 1 if a value is missing."""
    from sfumato.errors import SfumatoError

    dataset = _dataset(recipe, data, None)
    results: list[dict[str, object]] = []
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
        results.append(line)
    if as_json:
        emit_json({"hierarchies": results})
    else:
        for line in results:
            click.echo(_sentence(line))
        if not results:
            note("No column of the recipe has a hierarchy.")
    return 1 if any(line["state"] != "complete" for line in results) else 0


@command.command("show")
@click.argument("recipe", type=typed_path)
@click.argument("column")
@_DATA
@_VALUES
@json_option
def show(recipe: Path, column: str, data: str | None, show_values: bool, as_json: bool) -> None:
    """Show the levels of the hierarchy of COLUMN, with the number of groups and the size of the largest."""
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


def _dataset(recipe: Path, data: str | None, columns: list[str] | None) -> Data:
    """The data of the recipe with its schema, restricted to ``columns`` unless None."""
    from sfumato.data import read
    from sfumato.dataset import Data, Schema
    from sfumato.errors import FileMissing, UnknownColumn
    from sfumato.recipe import Recipe
    from sfumato.wording import did_you_mean

    loaded = Recipe.load(recipe)
    selected = dict(loaded.schema.columns)
    if columns is not None:
        for name in columns:
            if name not in selected:
                raise UnknownColumn(
                    f"The recipe has no column `{name}`.", fix=did_you_mean(name, selected), columns=(name,)
                )
        selected = {name: selected[name] for name in columns}
    source = data or (loaded.source.location if loaded.source else None)
    if source is None:
        raise FileMissing("The recipe has no `data:`.", fix="Add it, or use --data.")
    options = dict(loaded.source.options) if loaded.source and data is None else {}
    return Data.of(read(source, **options), Schema(columns=selected))


def _sentence(line: dict[str, object]) -> str:
    """One line of text about the hierarchy of a column."""
    match line["state"]:
        case "complete":
            return f"{line['column']}: complete"
        case "incomplete":
            values = line.get("values")
            listed = f": {', '.join(values)}" if isinstance(values, list) else "; --show-values lists them"
            have = "value has" if line["missing"] == 1 else "values have"
            return f"{line['column']}: {line['missing']} {have} no line in the hierarchy{listed}"
        case _:
            return f"{line['column']}: {line['reason']}"
