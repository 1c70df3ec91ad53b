"""Decide the roles of columns in a recipe, with name and reason."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sfumato.cli._console import emit_json, json_option, note, typed_path

if TYPE_CHECKING:
    from sfumato.dataset import Schema

PERSON = "steward"


@click.command("decide")
@click.argument("recipe", type=typed_path)
@click.argument("decisions", nargs=-1, metavar="[COLUMN=ROLE]...")
@click.option(
    "--rest",
    type=click.Choice(["identifier", "quasi", "sensitive", "plain", "drop"]),
    default=None,
    help="Role of all other undecided columns.",
)
@click.option("--new", is_flag=True, help="Add columns that the recipe does not name yet.")
@click.option(
    "--accept", is_flag=True,
    help="Accept attackers who know other columns than quasi-identifiers: the limit on risk leaves them out.",
)  # fmt: skip
@click.option("--unit", default=None, help="Whose privacy is kept: `row`, or the column that identifies a person.")
@click.option("--k", type=click.IntRange(min=2), default=None, help="The k of k-anonymity.")
@click.option("--table", default=None, help="Table of a data set document with several tables.")
@click.option("--by", required=True, help="Who decides. Published with the release.")
@click.option("--reason", default=None, help="Why. Published with the release. Required if a column becomes plain.")
@json_option
def command(
    recipe: Path,
    decisions: tuple[str, ...],
    rest: str | None,
    new: bool,
    accept: bool,
    unit: str | None,
    k: int | None,
    table: str | None,
    by: str,
    reason: str | None,
    as_json: bool,
) -> None:
    """Set the role of columns in RECIPE: sfumato decide sfumato.yaml height=quasi visits=plain --by "A. Steward".

    Roles: identifier and drop (removed), quasi (known to outsiders: masked), sensitive (must stay secret), weight,
    household, plain (released unchanged). 'cd*'=quasi decides all columns whose names match, except identifiers.

    The recipe keeps its comments; `decided_by` and `reason` are added to each decided column. Separate decisions by
    spaces. --accept writes `accepted` under `limits` and needs --reason.
    """
    import os
    import stat

    from sfumato.data import replacing
    from sfumato.data.yaml_documents import read_text_file
    from sfumato.dataset import Role
    from sfumato.recipe.decide import decide

    roles: dict[str, str] = {}
    for decision in decisions:
        name, equals, role = decision.rpartition("=")
        if not equals or not name:
            raise click.UsageError(f"`{decision}` is not COLUMN=ROLE, for example height=quasi.")
        roles[name] = role
    if not roles and rest is None and not accept and unit is None and k is None:
        raise click.UsageError(
            "Nothing is decided: name a column and its role (height=quasi), or use --rest, --accept, --unit or --k."
        )
    text = read_text_file(recipe, kind="recipe", fix="`sfumato init FILE` writes one.")
    before = _schema(text, recipe, table)
    changed = decide(
        text, roles, rest=rest, by=by, reason=reason, new=new, accept=accept, unit=unit, k=k, table=table
    )  # fmt: skip
    after = _schema(changed, recipe, table)
    with replacing(recipe, force=True) as temporary:
        temporary.write_text(changed, encoding="utf-8")
        os.chmod(temporary, stat.S_IMODE(recipe.stat().st_mode))
    earlier = {name: before.columns[name].role.value if name in before.columns else "new" for name in after.columns}
    decided = {name: column for name, column in after.columns.items() if column != before.columns.get(name)}
    left = list(after.names(Role.UNDECIDED))
    if as_json:
        entries = [
            {"column": name, "before": earlier[name], "role": column.role.value} for name, column in decided.items()
        ]
        emit_json(
            {
                "recipe": str(recipe),
                "decided": entries,
                "by": by,
                "reason": reason,
                "accepted": accept,
                "unit": unit,
                "k": k,
                "undecided": left,
            }
        )
        return
    changes: dict[str, list[str]] = {}
    for name, column in decided.items():
        role = column.role.value
        change = f"confirmed as {role}" if earlier[name] == role else f"{earlier[name]} -> {role}"
        changes.setdefault(change, []).append(name)
    for change, names in changes.items():
        click.echo(f"{change}: {', '.join(names)}")
    if accept:
        click.echo("Attackers who know columns that are no quasi-identifiers are accepted (`limits`: accepted).")
    if unit is not None:
        whose = "Every row is a different person" if unit == "row" else f"`{unit}` names the person"
        click.echo(f"{whose} (`unit`: {unit}).")
    if k is not None:
        click.echo(f"k-anonymity: k = {k}.")
    if left:
        note(f"\nStill undecided: {', '.join(left)}.")
    else:
        note(f"\nEvery column is decided. Then: sfumato protect {_quoted(recipe)}")


def _schema(text: str, path: Path, table: str | None) -> Schema:
    """The columns of a recipe, of one table of a data set document, or of a plan with its data set in the same file."""
    from sfumato.api.kind import kind_of_plan
    from sfumato.data.yaml_documents import parse_yaml
    from sfumato.dataset import Schema
    from sfumato.dataset.document import Dataset
    from sfumato.dataset.plan import DatasetPlan
    from sfumato.recipe.validate import recipe_from_document

    planned = any(issubclass(model, DatasetPlan) for model in kind_of_plan(text).plan_models())
    if table is not None or planned:
        dataset = Dataset.parse(text, base=path.parent, source=path.name)
        table = next(iter(dataset.tables)) if table is None else table
        known = dataset.tables.get(table)
        return Schema(columns={} if known is None else known.columns)
    return recipe_from_document(parse_yaml(text, source=path.name), base=path.parent).schema


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
