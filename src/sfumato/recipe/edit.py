"""Edit one setting of a recipe file in its text: comments and all other lines stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.data.yaml_documents import parse_yaml, yaml_flow, yaml_scalar
from sfumato.errors import BadParameter, InvalidRecipe


def set_section(recipe: str, key: str, value: object) -> str:
    """The text of a recipe with another value of a top-level key; None removes the key.

    Items of a list that do not change keep their lines and comments. A new key is added at the end.

    >>> text = "sfumato: 1\\nmodels:\\n  # why\\n  - k-anonymity: {k: 5}\\ncolumns: {a: quasi}  # one\\n"
    >>> print(set_section(text, "models", [{"k-anonymity": {"k": 5}}, {"l-diversity": {"l": 2}}]), end="")
    sfumato: 1
    models:
      # why
      - k-anonymity: {k: 5}
      - l-diversity: {l: 2}
    columns: {a: quasi}  # one
    """
    before = _document(recipe)
    old = before.get(key)
    if isinstance(value, list):
        value = [_name(entry) if isinstance(entry, dict) and not any(entry.values()) else entry for entry in value]
    pair = _pair(compose(recipe), key)
    if pair is None:
        text = recipe if value is None else f"{recipe.rstrip()}\n{_written(key, value)}\n"
    else:
        name, node = pair
        start, end = name.start_mark.index, name.end_mark.index + 1
        if old is not None:  # the mark of an empty value may lie behind the comments that follow
            end = max(_last(node), end)
        if value is None:
            text = recipe[:start] + recipe[_line_end(recipe, end) + 1 :]
        elif isinstance(value, list) and value and isinstance(old, list) and old and not node.flow_style:
            head = recipe[start : recipe.index("\n", name.end_mark.index) + 1]
            text = (
                recipe[:start]
                + head
                + _items(recipe, node, old, value, start + len(head))
                + recipe[_line_end(recipe, end) :]
            )
        else:
            stop = _line_end(recipe, end) if _is_block(node) else end
            text = recipe[:start] + _written(key, value) + recipe[stop:]
    wanted = {name: item for name, item in {**before, key: value}.items() if item is not None or name != key}
    return _verified(text, wanted, key)


def set_column(recipe: str, column: str, key: str, value: object) -> str:
    """The text of a recipe with another setting of one column; None removes the setting.

    >>> text = "sfumato: 1\\ncolumns:\\n  age: {role: quasi, kind: integer}  # years\\n"
    >>> print(set_column(text, "age", "hierarchy", {"intervals": [5, 10]}), end="")
    sfumato: 1
    columns:
      age: {role: quasi, kind: integer, hierarchy: {intervals: [5, 10]}}  # years
    """
    before = _document(recipe)
    columns = before.get("columns")
    names = {str(name): name for name in columns} if isinstance(columns, dict) else {}
    if not isinstance(columns, dict) or column not in names:
        raise BadParameter(f"The recipe has no column `{column}`.", fix="Add it to `columns` first.")
    declared = columns[names[column]]
    settings = dict(declared) if isinstance(declared, dict) else {"role": declared}
    changed = {name: item for name, item in {**settings, key: value}.items() if item is not None}
    node = node_at(compose(recipe), "columns", column)
    if _is_block(node):
        start, end = node.start_mark.index, _last(node)
        indent = "\n" + " " * int(node.start_mark.column)
        text = recipe[:start] + indent.join(f"{name}: {yaml_flow(item)}" for name, item in changed.items())
        text += recipe[end:]
    else:
        text = recipe[: node.start_mark.index] + yaml_flow(changed) + recipe[node.end_mark.index :]
    return _verified(text, {**before, "columns": {**columns, names[column]: changed}}, f"columns.{column}")


def _document(recipe: str) -> dict[str, object]:
    value = parse_yaml(recipe).value
    if not isinstance(value, dict):
        raise BadParameter("The recipe is not a mapping.", fix="`sfumato init FILE` writes a recipe.")
    return value


def _verified(text: str, wanted: dict[str, object], where: str) -> str:
    """The text if it means what was wanted. Anchors and shared declarations, for example, cannot be edited so."""
    try:
        meant = parse_yaml(text).value
    except InvalidRecipe:
        meant = None
    if meant != wanted:
        raise BadParameter(f"`{where}` cannot be edited by a form in this recipe.", fix="Edit the text of the recipe.")
    return text


def _written(key: str, value: object) -> str:
    """A top-level key with its value: lists of parts on lines of their own, everything else on one line."""
    if isinstance(value, list) and value:
        return "\n".join([f"{yaml_scalar(key)}:", *(_item(entry) for entry in value)])
    return f"{yaml_scalar(key)}: {yaml_flow(value)}"


def _item(entry: object, indent: str = "  ") -> str:
    """A part as a list item: ``- k-anonymity: {k: 5}``, or ``- remove`` without parameters."""
    if isinstance(entry, dict) and len(entry) == 1:
        [(name, settings)] = entry.items()
        return f"{indent}- {yaml_scalar(str(name))}: {yaml_flow(settings)}"
    return f"{indent}- {yaml_flow(entry)}"


def _items(text: str, node: Any, old: Sequence[Any], new: Sequence[Any], begin: int) -> str:
    """The lines of a list: items that stay keep theirs, a changed item keeps the comments above it."""
    chunks: list[tuple[str, str]] = []
    for item in node.value:
        dash = text.rindex("\n", 0, item.start_mark.index) + 1
        end = _line_end(text, _last(item))
        chunks.append((text[begin:dash], text[dash:end]))
        begin = end + 1
    indent = chunks[0][1][: len(chunks[0][1]) - len(chunks[0][1].lstrip())]
    left = list(range(len(old)))
    lines = []
    for place, entry in enumerate(new):
        same = next((i for i in left if old[i] == entry), None)
        if same is None and place in left and _name(old[place]) == _name(entry) and len(new) == len(old):
            left.remove(place)
            lines.append(chunks[place][0] + _item(entry, indent))
        elif same is not None:
            left.remove(same)
            lines.append("".join(chunks[same]))
        else:
            lines.append(_item(entry, indent))
    return "\n".join(lines)


def _name(entry: object) -> Any:
    return next(iter(entry)) if isinstance(entry, dict) and entry else entry


def compose(text: str) -> object:
    """The nodes of a document, with their places in its text."""
    from ruamel.yaml import YAML

    return YAML().compose(text)


def _pair(mapping: Any, key: str) -> tuple[Any, Any] | None:
    return next(((name, value) for name, value in mapping.value if name.value == key), None)


def node_at(root: object, *keys: str) -> Any:
    """The node at these keys, which are there. Keys are compared as plain data has them: ``1`` is not ``"1"``."""
    for key in keys:
        pair = _pair(root, key)
        assert pair is not None, "the parsed document has the key"
        root = pair[1]
    return root


def _is_block(node: Any) -> bool:
    """Whether a node is a mapping or a list over several lines."""
    return not isinstance(node.value, str) and not node.flow_style


def _last(node: Any) -> int:
    """Position after the last character of a node. The end of a block is that of its last value, before comments."""
    if _is_block(node) and node.value:
        inner = node.value[-1]
        return _last(inner[1] if isinstance(inner, tuple) else inner)
    end: int = node.end_mark.index
    return end


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", max(position - 1, 0) if text[position - 1 : position] == "\n" else position)
    return len(text) if end < 0 else end
