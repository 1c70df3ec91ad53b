"""Generated files: reference pages (parts, errors, commands, Python API) and type stubs of packages that export parts.

``python docs/manual.py`` writes all of them: the pages and the JSON Schemas below ``docs``, the stubs into the source
tree. ``make docs`` runs it; a test compares them with the code.
"""

from __future__ import annotations

import ast
import enum
import importlib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from sfumato.errors import catalogue
from sfumato.part_page import docstring, page
from sfumato.registry import KINDS, registry

if TYPE_CHECKING:
    import click

SOURCE = Path(__file__).parents[1] / "src" / "sfumato"
_PACKAGES = (
    *("data", "dataset", "dp", "ledger", "engines", "release", "recipe"),
    *("masking", "synthesis", "graphs", "events", "documents"),
    *("query", "tables", "learning", "collecting", "auditing", "parties", "integral"),
    *("profiling", "attacks", "measures", "evaluation", "studies", "reports", "testing"),
)
"""Packages on the page of the Python API, in the order of the layers."""
_NOTE = "<!-- Made by `make docs` from the source; edit the docstrings instead. -->\n\n"


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


def _default(value: object) -> str:
    """A default value in a signature; objects whose text says nothing are shown as ``...``."""
    if inspect.isclass(value):
        return value.__name__
    if isinstance(value, enum.Enum):
        return str(value)
    return repr(value) if value is None or isinstance(value, (bool, int, float, str, tuple, frozenset)) else "..."


def _annotation(annotation: Any) -> str:
    """A type in a signature: without the names of modules, and without the metadata of ``Annotated``."""
    if hasattr(annotation, "__metadata__"):
        return _annotation(annotation.__origin__)
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join("None" if part is type(None) else _annotation(part) for part in get_args(annotation))
    if get_origin(annotation) in (tuple, list, dict) and get_args(annotation):
        inner = ", ".join("..." if part is ... else _annotation(part) for part in get_args(annotation))
        return f"{get_origin(annotation).__name__}[{inner}]"
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z_])", "", text).strip("'")


def _signature(name: str, target: Callable[..., object], width: float = 100) -> str:
    """``name(parameter: type = default) -> type``, with a line for each parameter where it is longer than ``width``."""

    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return name
    pieces: list[str] = []
    star = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            pieces.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        mark = (
            "*"
            if parameter.kind is parameter.VAR_POSITIONAL
            else "**"
            if parameter.kind is parameter.VAR_KEYWORD
            else ""
        )
        typed = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
        given = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
        pieces.append(f"{mark}{parameter.name}{typed}{given}")
    empty = signature.return_annotation in (signature.empty, None, "None")
    result = "" if empty else f" -> {_annotation(signature.return_annotation)}"
    line = f"{name}({', '.join(pieces)}){result}"
    return line if len(line) <= width else f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + f"){result}"


def _members(cls: type) -> Iterator[str]:
    """Public methods and properties that the class itself defines."""
    for name, member in vars(cls).items():
        function = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(member, property)):
            continue
        summary = docstring(member).split("\n\n")[0].replace("\n", " ")
        shown = name if isinstance(member, property) else _signature(name, function, math.inf)
        yield f"- `{shown}`" + (f": {summary}" if summary else "")


def _api_page() -> str:
    """Signatures and docstrings of everything that `sfumato` and its packages export; parts have pages of their own."""
    parts = {cls for kind in KINDS for cls in registry(kind)}
    text = [
        "# Python API\n",
        "What `import sfumato` and its packages export, with signatures. Parts (methods, models, attacks, measures, "
        "mechanisms) are described on [their own pages](index.md).\n",
    ]
    for path in ("sfumato", *(f"sfumato.{name}" for name in _PACKAGES)):
        module = importlib.import_module(path)
        text += [f"## {path}\n", docstring(module).split("\n\n")[0] + "\n"]
        for name in sorted(getattr(module, "__all__", None) or dir(module), key=str.lower):
            target = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(target) or target in parts:
                continue
            if not (inspect.isclass(target) or inspect.isfunction(target)) or not target.__module__.startswith(
                "sfumato"
            ):
                continue
            text += [f"### {path}.{name}\n"]
            if inspect.isclass(target) and issubclass(target, enum.Enum):
                shown = f"{name}: " + ", ".join(repr(item.value) for item in target)
            elif inspect.isclass(target) and not (
                hasattr(target, "model_fields") or hasattr(target, "__dataclass_fields__")
            ):
                shown = f"class {name}"
            else:
                shown = _signature(name, target).removesuffix(" -> None")
            text += ["```text", shown, "```\n", docstring(target) + "\n"]
            if inspect.isclass(target):
                text += [*_members(target), ""]
    return "\n".join(text)


def _classifications_page() -> str:
    """Two tables whose cells are parts, by what the parts state of themselves."""
    found: dict[tuple[str, str], list[str]] = {}
    kinds: dict[str, list[str]] = {}
    for kind in KINDS:
        for cls in registry(kind):
            link = f"[{cls.part_name()}]({kind}/{cls.part_name()}.md)"
            for what in sorted(getattr(cls, "protects", ())):
                found.setdefault(("Boolean", what), []).append(link)
            if discloses := getattr(cls, "discloses", None):
                found.setdefault(("quantitative", str(discloses)), []).append(link)
            if cls.protection:
                found.setdefault((cls.protection, kind), []).append(link)
                kinds.setdefault(cls.protection, []).append(kind)
    lines = [
        "# Classifications of parts\n",
        "A model is a Boolean requirement and states what it protects; an attack measures a risk and states what it "
        "discloses. Examples: [two classifications](../field/classifications.md).\n",
        "| disclosure | Boolean: models | quantitative: attacks |",
        "|---|---|---|",
    ]
    for what in sorted({what for say, what in found if say in ("Boolean", "quantitative")}):
        cells = [", ".join(found.get((say, what), ["–"])) for say in ("Boolean", "quantitative")]
        lines.append(f"| {what} | {cells[0]} | {cells[1]} |")
    lines += ["", "| protection | parts |", "|---|---|"]
    for protection, of in sorted(kinds.items()):
        cells = [f"{kind}: {', '.join(found[protection, kind])}" for kind in dict.fromkeys(of)]
        lines.append(f"| {protection} | {'<br>'.join(cells)} |")
    return "\n".join(lines) + "\n"


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
    yield "reference/classifications.md", _NOTE + _classifications_page()
    yield "reference/errors.md", _NOTE + _errors_page()
    yield "reference/cli.md", _NOTE + _cli_page(root)
    yield "reference/api.md", _NOTE + _api_page()
    from sfumato.recipe.json_schema import json_schema

    yield "recipe.schema.json", json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
    from sfumato.reports.report_schema import report_schema

    yield "reference/report.schema.json", json.dumps(report_schema(), indent=1, ensure_ascii=False) + "\n"


def write_manual(folder: Path, root: click.Command) -> None:
    """Write all pages; pages of parts that are gone are removed."""
    pages = dict(manual(root))
    for old in (folder / "reference").rglob("*.md"):
        if str(old.relative_to(folder)) not in pages:
            old.unlink()
    for path, text in pages.items():
        _write(folder / path, text)


def _write(target: Path, text: str) -> None:
    """Write what differs: an unchanged file keeps its time, and what reads it meanwhile finds it whole."""
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def stubs() -> Iterator[tuple[str, str]]:
    """Every ``__init__.pyi``: its path below ``src``, and its text. Packages that export lazily have one.

    It names what the package imports, and every class that it lists: parts and estimators.
    """
    for path in sorted(SOURCE.glob("*/__init__.py")):
        source = ast.parse(path.read_text(encoding="utf-8"))
        if not any(isinstance(node, ast.Call) and ast.unparse(node.func) == "exports" for node in ast.walk(source)):
            continue
        package = f"sfumato.{path.parent.name}"
        names: dict[str, str] = {}
        for node in ast.walk(source):
            if isinstance(node, ast.ImportFrom) and node.module != "sfumato.registry":
                names |= {alias.asname or alias.name: str(node.module) for alias in node.names}
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "exports":
                names |= {str(k.arg): f"{package}.{ast.literal_eval(k.value)}" for k in node.keywords}
        module = importlib.import_module(package)
        listed = {name: getattr(module, name) for name in dir(module) if name not in names}
        names |= {name: value.__module__ for name, value in listed.items() if inspect.isclass(value)}
        lines = [f"from {place} import {name} as {name}" for name, place in sorted(names.items())]
        yield f"{package.replace('.', '/')}/__init__.pyi", "\n".join(["# Made by `make docs`.", *lines]) + "\n"


if __name__ == "__main__":
    from sfumato.cli import cli

    write_manual(Path(__file__).parent, cli)
    for path, text in stubs():
        _write(SOURCE.parent / path, text)
