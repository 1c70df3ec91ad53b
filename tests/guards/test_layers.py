"""Imports point one way: a layer knows the layers below it and nothing above."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sfumato"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "field_docs", "wording", "deferred", "proof", "arrays"),
    ("params", "progress", "extras", "secret"),
    ("registry", "rng", "kernels", "rationals", "deadline", "memory", "threads", "stats"),
    ("data", "drawing"),
    ("dataset", "datasets"),
    ("dp", "engines"),
    ("release",),
    ("ledger",),
    ("masking", "query", "profiling", "graphs"),
    ("synthesis", "tables", "collecting", "learning", "events", "documents"),
    ("auditing", "parties", "integral"),
    ("attacks",),
    ("measures",),
    ("recipe",),
    ("evaluation",),
    ("reports",),
    ("studies",),
    ("api",),
    ("web",),
    ("server",),
    ("demos", "part_page"),
    ("app",),
    ("testing",),
    ("cli",),
)
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}
"""Modules of one line stand side by side and do not know each other."""
ROOMS = {"commands": "cli", "demos": "demos", "report": "studies"}
"""Rooms of a family that stand as high as the layer of their trade: its commands, demos and reports."""
CIRCLES = tuple(frozenset(f"sfumato.{name}" for name in names.split()) for names in ("data data.formats",))
"""Packages that import each other today. The list only shrinks."""


def modules() -> dict[str, Path]:
    """Every module by its dotted name; a package by its own name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(("sfumato", *path.relative_to(SOURCE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports(path: Path, known: Mapping[str, Path] = MODULES) -> set[str]:
    """The modules of sfumato that a file imports, wherever in the file it does so."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in known else node.module for name in inside)
    return {name for name in found if name.startswith("sfumato.")}


IMPORTS = {name: imports(path) for name, path in MODULES.items()}


def layer_of(name: str) -> str:
    first, *rooms = name.split(".")[1:]
    return ROOMS.get(rooms[0], first) if rooms and first in ("auditing", "parties", "integral") else first


def package_of(name: str) -> str:
    return name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]


def cycles(edges: Mapping[str, set[str]]) -> list[frozenset[str]]:
    """Sets of packages each of which reaches every other one."""
    reach = {start: _reachable(start, edges) for start in edges}
    groups = {
        frozenset({start, *(other for other in known if start in reach.get(other, ()))})
        for start, known in reach.items()
    }
    return sorted((group for group in groups if len(group) > 1), key=sorted)


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    found, waiting = set(), [start]
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def test_every_module_belongs_to_a_layer() -> None:
    rooms = {layer_of(name) for name, path in MODULES.items() if name.count(".") and path.stem != "__main__"}
    assert rooms <= set(HEIGHT)


def test_imports_point_downwards() -> None:
    wrong = [
        f"{name} imports {other}, which stands beside or above it"
        for name, others in IMPORTS.items()
        if name.count(".") and MODULES[name].stem != "__main__"
        for other in sorted(others)
        if (there := other.split(".")[1]) in HEIGHT
        and there != (here := layer_of(name))
        and HEIGHT[there] >= HEIGHT[here]
    ]
    assert not wrong, "\n".join(wrong)


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    """A package's own ``__init__`` collects names of its rooms and does not count."""
    edges: dict[str, set[str]] = {}
    for name, others in IMPORTS.items():
        if MODULES[name].name != "__init__.py" and name.count(".") > 1:
            known = {package_of(other) for other in others if other in MODULES} - {package_of(name), "sfumato"}
            edges.setdefault(package_of(name), set()).update(known)
    found = cycles(edges)
    new = [" <-> ".join(sorted(group)) for group in found if not any(group <= listed for listed in CIRCLES)]
    assert not new, "\n".join(new)
    here = {package_of(name) for name in MODULES}  # a family may have been removed
    gone = [sorted(one) for one in CIRCLES if one <= here and not any(group <= one for group in found)]
    assert not gone, f"No circle any more, remove from the list: {gone}"


def test_the_guard_sees_an_upward_import_and_a_circle(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("def f():\n    from sfumato.cli import main\n    import sfumato.reports.report_data\n")
    assert {name.split(".")[1] for name in imports(file)} == {"cli", "reports"}
    assert cycles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}) == [frozenset("abc")]
