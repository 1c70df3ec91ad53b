"""Removable families: nothing else imports them, and what is left works without their folders."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sfumato"
FAMILIES = ("auditing", "parties", "integral", "engines/backends/spark")
QUICK = ("tests/guards/test_layers.py", "tests/guards/test_receipts.py", "tests/ledger/test_composition.py")
SMOKE = """
import pkgutil, importlib, sfumato
from click.testing import CliRunner
for module in pkgutil.walk_packages(sfumato.__path__, "sfumato."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from sfumato.cli import cli
from sfumato.registry import KINDS, registry
for kind in KINDS:
    for part in registry(kind):
        assert part.part_name() in registry(kind)
for words in (["--help"], ["methods"], ["query", "--help"], ["learn", "--help"], ["collect", "--help"]):
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, (words, done.output)
from sfumato.demos.private_hospital import flu
assert flu(people=200, budget=10).ask("SELECT COUNT(*) FROM patients", epsilon=1).rows
import polars as pl
from sfumato import protect
people = pl.DataFrame({"age": [20 + n % 30 for n in range(60)], "ill": ["yes", "no"] * 30})
columns = {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}}
recipe = {"sfumato": 1, "columns": columns, "models": [{"k-anonymity": 3}], "steps": ["mondrian"]}
assert protect(recipe, people, unmet=True).release.table.rows == 60
"""


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """Each module that a file imports, and whether it does so only inside a function or for type checkers."""

    def walk(node: ast.AST, later: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            inner = later or isinstance(child, ast.FunctionDef) or _for_types(child)
            if isinstance(child, ast.ImportFrom):
                yield child.module or "", inner
                yield from ((f"{child.module}.{alias.name}", inner) for alias in child.names)
            elif isinstance(child, ast.Import):
                yield from ((alias.name, inner) for alias in child.names)
            yield from walk(child, inner)

    return walk(ast.parse(path.read_text(encoding="utf-8")), False)


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_else_imports_a_family(family: str) -> None:
    """Contract checks of its parts may, once they are called: they have a part of the family in hand."""
    package = f"sfumato.{family.replace('/', '.')}"
    name_of_family = package.rpartition(".")[2]
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / family) or name_of_family not in path.read_text(encoding="utf-8"):
            continue
        for name, later in imported(path):
            checks = later and path.is_relative_to(SOURCE / "testing")
            assert not f"{name}.".startswith(f"{package}.") or checks, f"{path.relative_to(SOURCE)} imports {name}"


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_left_works_without_a_family(family: str, tmp_path: Path) -> None:
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.rmtree(tmp_path / "src" / "sfumato" / family)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    for words in (["-c", SMOKE], ["-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *QUICK]):
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def test_the_guard_sees_imports_at_the_top_and_inside(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("import sfumato.parties.party\ndef f():\n    from sfumato import auditing\n")
    assert {("sfumato.parties.party", False), ("sfumato.auditing", True)} <= set(imported(file))
