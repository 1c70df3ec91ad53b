"""Decide roles in a recipe file: an edit of its text that keeps comments and everything else."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from sfumato.data.yaml_documents import parse_yaml, yaml_flow, yaml_scalar
from sfumato.dataset import Role
from sfumato.dataset.column import PLAIN_FIX, plain_needs_reason
from sfumato.errors import BadParameter, UnknownColumn
from sfumato.masking.models.k_anonymity import KAnonymity
from sfumato.recipe.edit import compose, node_at, set_section
from sfumato.wording import did_you_mean

_DECISIONS = tuple(role for role in Role if role is not Role.UNDECIDED)


def decide(
    recipe: str,
    roles: Mapping[str, Role | str] | None = None,
    *,
    rest: Role | str | None = None,
    by: str,
    reason: str | None = None,
    new: bool = False,
    accept: bool = False,
    unit: str | None = None,
    k: int | None = None,
    table: str | None = None,
) -> str:
    """The text of a recipe with these roles decided. Comments and all other text stay as they are.

    Parameters
    ----------
    recipe
        The text of a recipe, for example from ``sfumato.propose(data).recipe(k=5)``.
    roles
        The role of each column to decide. Columns that were decided before may be decided anew. ``cd*`` stands for all
        columns whose names match; it leaves identifiers and columns that are named beside it alone.
    rest
        The role of all other columns that are still undecided.
    by, reason
        Who decides, and why. Both are published with the release. ``reason`` is required if a column becomes plain,
        because it then leaves unchanged, and for ``accept``.
    new
        Whether columns that the recipe does not name yet are added to it.
    accept
        Whether the limit on risk leaves out attackers who know columns that are no quasi-identifiers (``accepted``
        under ``limits``).
    unit
        Whose privacy is kept: ``row`` if every row is a different person, else the column with the person. For a
        recipe; a document of several tables says it as ``person``.
    k
        The k of the model k-anonymity that the recipe has.
    table
        The table of a data set document; the only one if left out.

    >>> text = "sfumato: 1\\ncolumns:\\n  ht: {role: undecided}  # height\\n"
    >>> print(decide(text, {"ht": "quasi"}, by="A. Steward"), end="")
    sfumato: 1
    columns:
      ht: {role: quasi, decided_by: A. Steward}  # height
    """
    if not by.strip():
        raise BadParameter("`by` is required: who decides.")
    if accept:
        recipe = _accepting(recipe, by.strip(), reason)
    if unit is not None:
        recipe = _about(recipe, unit)
    if k is not None:
        recipe = _of_size(recipe, k)
    if (accept or unit is not None or k is not None) and not roles and rest is None:
        return recipe
    document = parse_yaml(recipe)
    where = _where(document.value, table)
    declared = document.value
    for key in where:
        declared = declared.get(key) if isinstance(declared, dict) else None
    if not isinstance(declared, dict):
        raise BadParameter(
            "The recipe has no columns.",
            fix="`sfumato init FILE` writes a recipe; columns of a data set are decided in its own document.",
        )
    columns = {str(name): value for name, value in declared.items()}  # a key such as 1 is a number in YAML
    chosen = _chosen(columns, roles or {}, rest, new=new)
    if not (reason or "").strip() and Role.PLAIN in chosen.values():
        plain = [name for name, role in chosen.items() if role is Role.PLAIN]
        raise BadParameter(plain_needs_reason(plain), fix=PLAIN_FIX)
    facts = {"decided_by": by.strip(), **({"reason": reason} if reason is not None else {})}
    text = recipe
    for name, role in chosen.items():
        settings = {"role": role.value, **facts}
        text = _edited(text, where, name, settings) if name in columns else _added(text, where, name, settings)
    wanted = {name: {"role": role.value, **facts} for name, role in chosen.items() if name not in columns} | {
        name: {**(value if isinstance(value, dict) else {"role": value}), "role": chosen[str(name)].value, **facts}
        if str(name) in chosen
        else value
        for name, value in declared.items()
    }
    if parse_yaml(text).value != _with(document.value, where, wanted):
        raise BadParameter(
            "This recipe cannot be edited by the command, for example because columns share one declaration.",
            fix="Change `role`, `decided_by` and `reason` of the columns by hand.",
        )
    return text


def _chosen(
    columns: Mapping[str, object], roles: Mapping[str, Role | str], rest: Role | str | None, *, new: bool
) -> dict[str, Role]:
    chosen = {}
    for name, role in roles.items():
        if name in columns or new:
            chosen[name] = _role(role)
            continue
        for column in _matching(name, columns):
            if column not in roles:
                chosen[column] = _role(role)
    if rest is not None:
        for name, value in columns.items():
            if _current(value) == Role.UNDECIDED.value and name not in chosen:
                chosen[name] = _role(rest)
    return chosen


def _matching(pattern: str, columns: Mapping[str, object]) -> list[str]:
    """The columns that a pattern stands for, without identifiers: those are decided by name."""
    found = [name for name in columns if fnmatchcase(name, pattern)]
    if not found:
        raise UnknownColumn(
            f"The recipe has no column `{pattern}`.",
            fix=f"{did_you_mean(pattern, columns)} `cd*` stands for several columns; `new` adds a column.",
        )
    return [name for name in found if _current(columns[name]) != Role.IDENTIFIER.value]


def _current(column: object) -> object:
    return column.get("role", Role.UNDECIDED.value) if isinstance(column, dict) else column


def _accepting(text: str, by: str, reason: str | None) -> str:
    """The text with ``accepted`` under its limits."""
    document = parse_yaml(text).value
    limits = document.get("limits") if isinstance(document, dict) else None
    if not isinstance(limits, dict) or "risk" not in limits:
        raise BadParameter(
            "The recipe has no limit on risk, so there is nothing to accept.", fix="Add `limits: {risk: 0.09}` first."
        )
    if reason is None or not reason.strip():
        raise BadParameter(
            "A reason is required to accept attackers who know more columns.",
            fix="Say in `reason` why no attacker can know columns that are no quasi-identifiers.",
        )
    accepted = {"by": by, "reason": reason.strip()}
    node = node_at(compose(text), "limits")
    if "accepted" in limits:
        old = node_at(node, "accepted")
        start, end, added = old.start_mark.index, old.end_mark.index, yaml_flow(accepted)
    else:
        first = node.value[0][0].start_mark
        start = end = first.index
        gap = ", " if node.flow_style else "\n" + " " * first.column
        added = f"accepted: {yaml_flow(accepted)}{gap}"
    changed = text[:start] + added + ("\n" if text[start:end].endswith("\n") else "") + text[end:]
    if parse_yaml(changed).value != {**document, "limits": {**limits, "accepted": accepted}}:
        raise BadParameter(
            "The limits of this recipe cannot be edited by the command.",
            fix="Add `accepted: {by: NAME, reason: TEXT}` under `limits` by hand.",
        )
    return changed


def _about(text: str, unit: str) -> str:
    """The text with whose privacy is kept."""
    document = parse_yaml(text).value
    columns = document.get("columns") if isinstance(document, dict) else None
    if not isinstance(columns, dict):
        raise BadParameter("`unit` belongs to a recipe with columns.", fix="Set `person` in the document by hand.")
    if unit != "row" and unit not in columns:
        raise UnknownColumn(f"The recipe has no column `{unit}`.", fix=did_you_mean(unit, [*columns, "row"]))
    return set_section(text, "unit", unit)


def _of_size(text: str, k: int) -> str:
    """The text with another k of k-anonymity, everything else about the models as it was."""
    document = parse_yaml(text).value
    models = document.get("models") if isinstance(document, dict) else None
    name = KAnonymity.part_name()
    if not isinstance(models, list) or not any(isinstance(one, dict) and name in one for one in models):
        raise BadParameter(f"The recipe has no model `{name}`.", fix=f"Add `{name}: {{k: {k}}}` under `models` first.")
    changed = [
        {name: {**(one[name] if isinstance(one[name], dict) else {}), "k": KAnonymity(k=k).k}}
        if isinstance(one, dict) and name in one
        else one
        for one in models
    ]
    return set_section(text, "models", changed)


def _role(role: Role | str) -> Role:
    if role not in _DECISIONS:
        raise BadParameter(f"`{role}` is not a role to decide.", fix=did_you_mean(str(role), _DECISIONS))
    return Role(role)


def _where(document: object, table: str | None) -> tuple[str, ...]:
    """The keys that lead to the columns: of a recipe, or of one table of a data set."""
    tables = document.get("tables") if isinstance(document, dict) else None
    if not isinstance(tables, dict):
        return ("columns",)
    if table is None and len(tables) > 1:
        raise BadParameter(
            "The data set has several tables.", fix=f"Choose one as `table`: {' or '.join(tables)}.", option="table"
        )
    name = next(iter(tables), "") if table is None else table
    if name not in tables:
        raise BadParameter(f"The data set has no table `{name}`.", fix=did_you_mean(name, tables))
    return "tables", name, "columns"


def _with(document: dict[str, Any], where: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A document with another value at a place."""
    [first, *rest] = where
    return {**document, first: _with(document[first], tuple(rest), value) if rest else value}


def _edited(text: str, where: tuple[str, ...], name: str, settings: Mapping[str, str]) -> str:
    """The text with these settings of one column: existing scalars are replaced, new ones follow the role."""
    from ruamel.yaml.nodes import MappingNode

    column = node_at(compose(text), *where, name)
    if not isinstance(column, MappingNode) or not column.value:
        return text[: column.start_mark.index] + yaml_flow(settings) + text[column.end_mark.index :]
    edits: list[tuple[int, int, str]] = []
    new = {key: value for key, value in settings.items() if key not in {pair[0].value for pair in column.value}}
    for key, value in settings.items():
        if key not in new:
            scalar = node_at(column, key)
            start, end = scalar.start_mark.index, scalar.end_mark.index
            edits.append((start, end, yaml_scalar(value) + ("\n" if text[start:end].endswith("\n") else "")))
    first = column.value[0][0].start_mark
    if "role" in new:  # declared for queries only
        between = ", " if column.flow_style else "\n" + " " * first.column
        at, added = first.index, "".join(f"{key}: {yaml_scalar(value)}{between}" for key, value in new.items())
    elif column.flow_style:
        at, added = (
            node_at(column, "role").end_mark.index,
            "".join(f", {key}: {yaml_scalar(value)}" for key, value in new.items()),
        )
    else:
        line = text.find("\n", node_at(column, "role").end_mark.index)
        at = len(text) if line < 0 else line
        indent = "\n" + " " * first.column
        added = "".join(f"{indent}{key}: {yaml_scalar(value)}" for key, value in new.items())
    edits.append((at, at, added))
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _added(text: str, where: tuple[str, ...], name: str, settings: Mapping[str, str]) -> str:
    """The text with one more column, before the others."""
    first = node_at(compose(text), *where).value[0][0].start_mark
    return f"{text[: first.index]}{yaml_scalar(name)}: {yaml_flow(settings)}\n{' ' * first.column}{text[first.index :]}"
