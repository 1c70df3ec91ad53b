"""Write, check and show the generalization hierarchies of a recipe."""

from __future__ import annotations

from pathlib import Path

import click

from sfumato.cli._console import CommandGroup, emit_json, force_option, json_option, note, typed_path
from sfumato.wording import counted

PERSON = "steward"


_DATA = click.option("--data", default=None, help="File or database URL to use instead of the recipe's own data.")
_TABLE = click.option("--table", default=None, help="Table of a data set document with several tables.")
_VALUES = click.option("--show-values", is_flag=True, help="Print values of the data. For the owner only.")


@click.group("hierarchy", cls=CommandGroup)
def command() -> None:
    """Generalization hierarchies of a recipe: write one to a file, check them against the data, show one."""


@command.command("write")
@click.argument("recipe", type=typed_path)
@click.argument("column")
@click.option("--out", type=typed_path, default=None, help="File to write; COLUMN.hierarchy.csv if left out.")
@_TABLE
@_DATA
@force_option
@json_option
def write(
    recipe: Path, column: str, out: Path | None, table: str | None, data: str | None, force: bool, as_json: bool
) -> None:
    """Write the hierarchy of COLUMN to a CSV file, to be edited and used with {file: ...}.

    The file lists every value of the column, one per line: protect it like the data. A release publishes the lines of
    its hierarchy files. Add all values that could occur before you use the file, or use a rule instead.
    """
    from sfumato.api.hierarchy import hierarchy_of
    from sfumato.data import replacing

    path = out if out is not None else Path(f"{column}.hierarchy.csv")
    hierarchy = hierarchy_of(recipe, column, table=table, data=data)
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
@_TABLE
@_DATA
@_VALUES
@json_option
def check(recipe: Path, table: str | None, data: str | None, show_values: bool, as_json: bool) -> int:
    """Check that the hierarchies contain all values of their columns. The exit code is 1 if a value is missing."""
    from sfumato.api.hierarchy import check_hierarchies

    found = check_hierarchies(recipe, table=table, data=data)
    results = [one.to_dict(show_values=show_values) for one in found]
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
@_TABLE
@_DATA
@_VALUES
@json_option
def show(recipe: Path, column: str, table: str | None, data: str | None, show_values: bool, as_json: bool) -> None:
    """Show the levels of the hierarchy of COLUMN, with the number of groups and the size of the largest."""
    from sfumato.api.hierarchy import hierarchy_of

    hierarchy = hierarchy_of(recipe, column, table=table, data=data)
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
