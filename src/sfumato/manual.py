"""Generated files: reference pages of all parts, errors and commands, and type stubs of the packages that export parts.

``sfumato methods --write docs`` writes the pages and the recipe's JSON Schema below that folder. ``python -m
sfumato.manual`` writes the stubs into the source tree. ``make docs`` runs both; a test compares them with the code.
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.errors import catalogue
from sfumato.params import Part
from sfumato.registry import KINDS, kinds_of, registry

if TYPE_CHECKING:
    import click

__all__ = ["manual", "page", "stubs", "write_manual", "write_stubs"]

_SECTION = {"method": "steps", "model": "models", "attack": "attacks", "measure": "measures"}
_NOTE = "<!-- Made by `make docs` from the source; edit the docstrings instead. -->\n\n"


def _type_words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        words = [_type_words(option) for option in schema["anyOf"] if option.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    name = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}.get(
        schema.get("type", ""), schema.get("type", "any value")
    )
    if schema.get("type") == "array":
        name = f"list of {_type_words(schema.get('items', {}))}"
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {schema[key]:g}" for key, sign in bounds.items() if key in schema]
    return ", ".join([name, *limits])


def _parameters(cls: type[Part]) -> str:
    schema = cls.model_json_schema()
    rows = []
    for name, field in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        default = "required" if required else f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
        if not required and field.get("default") is None:
            default = "–"
        words = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
        rows.append(f"| `{name}` | {_type_words(field)} | {default} | {words} |")
    if not rows:
        return "It has no parameters.\n"
    return "\n".join(["| parameter | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def page(kind: str, cls: type[Part]) -> str:
    """The manual page of one part, as Markdown."""
    from sfumato.recipe.recipe import yaml_text

    name = cls.part_name()
    text = [
        f"# {name}\n",
        f"*{kind}*\n",
        inspect.cleandoc(cls.__doc__ or "") + "\n",
        "## Parameters\n",
        _parameters(cls),
    ]
    if cls.main is not None:
        text.append(f"A bare value sets `{cls.main}`.\n")
    if cls.examples:
        shown: list[Any] = [{name: example} if example else name for example in cls.examples]
        where = _SECTION.get(kind)
        document: Any = {where: shown} if where else shown
        if kind == "hierarchy":
            document = {"columns": {"column": {"role": "quasi", "hierarchy": shown[0]}}}
        text += ["## Example\n", "```yaml", yaml_text(document).rstrip(), "```\n"]
    if cls.reference:
        text += ["## Reference\n", cls.reference + "\n"]
    return "\n".join(text)


def _cli_page(root: click.Command) -> str:
    import click

    text = ["# Commands\n"]

    def describe(command: click.Command, path: list[str], parent: click.Context | None) -> None:
        settings = {**command.context_settings, "max_content_width": 100, "terminal_width": 100}
        context = click.Context(command, info_name=path[-1], parent=parent, **settings)
        text.extend(
            [f"{'#' * min(len(path) + 1, 4)} {' '.join(path)}\n", "```text", command.get_help(context), "```\n"]
        )
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                child = command.get_command(context, name)
                if child is not None:
                    describe(child, [*path, name], context)

    describe(root, ["sfumato"], None)
    return "\n".join(text)


def _errors_page() -> str:
    rows = [
        f'## <a id="{kind.code.lower()}"></a>{kind.code} {kind.__name__}\n\n{inspect.cleandoc(kind.__doc__ or "")}\n\n'
        f"Exit code {kind.status}.\n"
        for kind in catalogue()
    ]
    head = "# Errors\n\nEvery refusal has a stable code. No message contains a value of the data.\n"
    return "\n".join([head, *rows])


def manual(root: click.Command) -> Iterator[tuple[str, str]]:
    """Every generated page: its path below the docs folder, and its text. ``root`` is the command line to describe."""
    index = ["# Parts\n", "Every part that is registered. `sfumato methods NAME` shows the same pages.\n"]
    for kind in KINDS:
        parts = list(registry(kind))
        if not parts:
            continue
        index.append(f"## {kind}\n")
        for cls in parts:
            path = f"reference/{kind}/{cls.part_name()}.md"
            index.append(f"- [{cls.part_name()}]({kind}/{cls.part_name()}.md): {cls.summary()}")
            yield path, _NOTE + page(kind, cls)
        index.append("")
    yield "reference/index.md", _NOTE + "\n".join(index)
    yield "reference/errors.md", _NOTE + _errors_page()
    yield "reference/cli.md", _NOTE + _cli_page(root)
    from sfumato.recipe.json_schema import json_schema

    yield "recipe.schema.json", json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


def write_manual(folder: Path, root: click.Command) -> None:
    """Write all pages; pages of parts that are gone are removed."""
    pages = dict(manual(root))
    for old in (folder / "reference").rglob("*.md"):
        if str(old.relative_to(folder)) not in pages:
            old.unlink()
    for path, text in pages.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def stubs() -> Iterator[tuple[str, str]]:
    """Every ``__init__.pyi``: its path below ``src``, and its text. It names what the package imports and its parts."""
    root = Path(__file__).parent
    for package in sorted({".".join(folder.split(".")[:2]) for folders in KINDS.values() for folder in folders}):
        source = ast.parse((root / package.split(".")[1] / "__init__.py").read_text(encoding="utf-8"))
        names: dict[str, str] = {}
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom) and node.module != "sfumato.registry":
                names |= {alias.asname or alias.name: str(node.module) for alias in node.names}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "exports":
                names |= {str(k.arg): f"{package}.{ast.literal_eval(k.value)}" for k in node.keywords}
                for kind in kinds_of(package):
                    names |= {registry(kind).get(p).__name__: module for p, module in registry(kind).modules().items()}
        lines = [f"from {module} import {name} as {name}" for name, module in sorted(names.items())]
        if lines:
            yield f"{package.replace('.', '/')}/__init__.pyi", "\n".join(["# Made by `make docs`.", *lines]) + "\n"


def write_stubs() -> None:
    """Write all stubs into the source tree."""
    for path, text in stubs():
        Path(__file__).parents[1].joinpath(path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_stubs()
