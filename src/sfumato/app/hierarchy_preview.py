"""Hierarchies of a project: the state of each column's, and a preview of its levels on the data."""

from __future__ import annotations

from typing import Any

from sfumato.app.project import RecipeProject
from sfumato.data import preview
from sfumato.dataset import Data, Role, Schema
from sfumato.dataset.hierarchy import hierarchy_from_dict
from sfumato.errors import BadParameter, SfumatoError

__all__ = ["hierarchy_states", "preview_hierarchy"]

_ROWS = 200_000
_SHOWN = 400
"""Values in a preview."""


def _dataset(project: RecipeProject, columns: list[str] | None = None, **hierarchies: Any) -> Data:
    recipe = project.recipe()
    if recipe is None:
        raise BadParameter("There is no recipe yet.", fix="Wait until the profile is done.")
    location, options = project.source()
    table = preview(location, most=_ROWS, **options).table
    chosen = {n: c for n, c in recipe.schema.columns.items() if n in table.columns and (not columns or n in columns)}
    for name, hierarchy in hierarchies.get("hierarchies", {}).items():
        chosen[name] = chosen[name].model_copy(update={"hierarchy": hierarchy})
    return Data.of(table, Schema(columns=chosen))


def hierarchy_states(project: RecipeProject) -> list[dict[str, Any]]:
    """For each quasi-identifier: complete, incomplete, refused (with the reason), or none."""
    dataset = _dataset(project)
    states = []
    for name, column in dataset.schema.columns.items():
        if column.role is not Role.QUASI:
            continue
        state: dict[str, Any] = {"column": name, "kind": column.kind, "state": "none", "missing": 0, "levels": 1}
        if column.hierarchy is not None:
            state["rule"] = column.hierarchy.part_name()
            try:
                bound = dataset.bound_hierarchy(name)
                gaps = bound.gaps(dataset.table.column(name))
                state |= {"state": "incomplete" if len(gaps) else "complete", "missing": len(gaps)}
                state["levels"] = bound.height
            except SfumatoError as refusal:
                state |= {"state": "refused", "reason": str(refusal)}
        states.append(state)
    return states


def preview_hierarchy(project: RecipeProject, column: str, setting: Any) -> dict[str, Any]:
    """The levels of a hierarchy on the values of a column; ``setting`` as a recipe writes it, None for the own one.

    Each line is a value with its label at every level. Values without a place in the hierarchy are listed as gaps.
    """
    recipe = project.recipe()
    declared = recipe.schema.columns.get(column) if recipe is not None else None
    if declared is None:
        raise BadParameter(f"The recipe has no column `{column}`.")
    rule = hierarchy_from_dict(setting, base=project.recipe_path.parent) if setting is not None else declared.hierarchy
    dataset = _dataset(project, [column], hierarchies={column: rule})
    bound = dataset.bound_hierarchy(column)
    values = dataset.table.column(column)
    gaps = bound.gaps(values)
    counts = {str(value): count for value, count in values.drop_nulls().value_counts(sort=True).iter_rows()}
    rows = bound.rows()
    present = [row for row in rows if row[0] in counts] or rows
    return {
        "levels": [
            {"level": number, "groups": level.size, "largest": int(level.leaves_under.max(initial=0))}
            for number, level in enumerate(bound.levels)
        ],
        "rows": present[:_SHOWN],
        "counts": [counts.get(row[0], 0) for row in present[:_SHOWN]],
        "values": len(rows),
        "gaps": [str(value) for value in gaps.sort().head(_SHOWN)],
        "missing": len(gaps),
    }
